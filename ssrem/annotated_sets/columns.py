"""Finds which column of rated responses, or of responses to score, holds which field: by `--map`, or by well-known
names that the values do not contradict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ssrem.errors import AnnotationError
from ssrem.readers.fields import (
    ALIASES,
    FEW,
    OF_RESPONSES,
    SCORE_OF,
    SIGNS,
    USER_ROLES,
    by_words,
    check_header,
    checked_mapping,
    normalise,
    told,
    turn_text,
    unknown_columns,
)
from ssrem.readers.json_values import is_pair, opened
from ssrem.readers.paths import MEMBERS, values_at

_GOOD = "pass|true|yes|y|good|correct|positive|like|thumbs_up|thumbs up|up|👍"
_BAD = "fail|false|no|n|bad|incorrect|negative|dislike|thumbs_down|thumbs down|down|👎"
WORDS: Mapping[str, float] = {**dict.fromkeys(_GOOD.split("|"), 1), **dict.fromkeys(_BAD.split("|"), 0)}
"""Two-valued labels, in lower case → 1 or 0. They are recognised in any case, as are JSON's true and false."""

_LONGEST_NAME = 100
"""Most characters of names of systems, raters or criteria on average; longer texts are instructions or utterances."""
_LONGEST_SCORE = 40
"""Most characters of a score with its meaning, such as `4 - good`."""
_FIRST_ROWS = 1_000
"""Number of rows, from the first, that decide whether turns begin with speakers."""
_ONE_OF_SEVERAL = re.compile(
    r"(?i)(?:[ra]|rater|annotator|worker|judge|expert|coder|(?:human_)?(?:score|rating)|overall)[ _]?\d+"
)
"""Names of columns that hold the scores of one rater each."""
_ESCAPES = (("\\n", "\n"), ("\\t", "\t"))
_SEPARATORS = (
    *("__eou__", "__EOU__", "<eou>", "<EOU>", " EOU ", " EOS ", "[SEP]", "<sep>", "<SEP>", "</s>"),
    *("<|endoftext|>", "|||"),
    *("<br>", "<br/>", "<br />", "\\n", "\t"),
)
"""Marks that separate turns in published dialogues, in place of line breaks."""
_SPEAKER = re.compile(
    r"\A\s*(?:user|human|customer|person|system|bot|chatbot|assistant|agent|ai|model|(?:speaker|person) ?[\dab]|[ab])"
    r"\s*:\s*",
    re.IGNORECASE,
)
"""The speaker at the beginning of a turn, which some contexts have, such as `User: `."""
_OF_PEOPLE = re.compile(
    r"human_(?:\w+_)?(?:scores?|ratings?|labels?|verdicts?|judge?ments?|overall|quality|mean|average|avg)"
)
"""Names of columns with the scores of people, as `normalise` writes them."""

Values = Mapping[str, Any]


def divided(mapping: Mapping[str, str] | None) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """Divide a mapping into the fields of dumps and those of annotated sets, which differ; None for an empty part."""
    given = mapping or {}
    sets = {name: given[name] for name in given if name in OF_RESPONSES or name.startswith(SCORE_OF)}
    return {name: given[name] for name in given if name not in sets} or None, sets or None


def listed(text: str, separator: str = "\n") -> list[Any]:
    """The turns in a text: the members if the text is a list of texts, messages or (speaker, text) pairs; the message
    if it is one message; else the parts between separators."""
    value = opened(text)
    if _is_message(value):
        return [value]
    pairs = isinstance(value, list) and bool(value) and all(map(is_pair, value))
    if pairs or (isinstance(value, list) and all(isinstance(one, str | dict | None) for one in value)):
        return list(value)
    return list(text.split(separator))


def turns(context: Any) -> tuple[str, ...]:
    """The turns of a context, oldest first, stripped, without blank ones. The context is a text, or a list of texts or
    messages of a chat log; messages of systems and tools are no turns. ValueError, with the reason, for anything
    else."""
    values = listed(context) if isinstance(context, str) else context
    texts = [turn_text(value) for value in (values if isinstance(values, list | tuple) else [values])]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("context is neither text nor a list of turns")
    return tuple(text.strip() for text in texts if text and text.strip())


def without_speakers(lines: Iterable[str]) -> list[str]:
    """The turns in the lines, without their speakers; a line that names no speaker continues the turn before it."""
    said: list[str] = []
    for line in lines:
        if _SPEAKER.match(line) or not said:
            said.append(without_speaker(line))
        else:
            said[-1] += f"\n{line}"
    return said


def without_speaker(text: str) -> str:
    """The text without the speaker at its beginning, if there is one."""
    return _SPEAKER.sub("", text)


def _is_message(value: Any) -> bool:
    """Whether a value is a message of a chat log; an object without `content` may itself be the text of a turn."""
    return isinstance(value, dict) and "content" in value and isinstance(turn_text(value), str)


def ends_with_answer(cells: Sequence[Any]) -> bool:
    """Whether all cells that are not empty hold messages, and the last message of at least one is not a user's: a
    context and the response to it."""
    lists = [one for one in cells if one not in (None, [])]
    last = [one[-1] for one in lists if isinstance(one, list) and isinstance(one[-1], dict)]
    return len(last) == len(lists) and any(not _of_user(one) for one in last)


def columns_of_messages(header: Sequence[str]) -> tuple[str, str] | None:
    """The columns of the dialogue and the text if rows are messages of dialogues; None if columns hold contexts or
    responses, or either of the two columns is missing."""
    known = {normalise(name): name for name in header}
    if not known.keys().isdisjoint((*ALIASES["context"], *ALIASES["response"])):
        return None
    dialogue, text = (
        next((known[name] for name in ALIASES[field] if name in known), "")
        for field in ("conversation", "text")
    )
    return (dialogue, text) if dialogue and text else None


def _of_user(message: Mapping[str, Any]) -> bool:
    return str(message.get("role", message.get("from", "user"))).lower() in USER_ROLES


def more_references(reference: Any) -> int:
    """Number of references besides the one that is read, if the value is a list of them."""
    reference = opened(reference)
    return max(0, len(reference) - 1) if isinstance(reference, list | tuple) else 0


def as_text(field: str, value: Any) -> str:
    """The value of a field as text. Numbers and dates are converted, of a list of references the first that is not
    blank is taken, a message is its text, as is a list of one message, and null is empty. ValueError for anything else.
    """
    inside = opened(value) if isinstance(value, str) and field in ("response", "reference") else value
    one = inside[0] if field == "response" and isinstance(inside, list) and len(inside) == 1 else inside
    if field == "reference" and isinstance(inside, list | tuple):
        value = next((text for text in inside if text is not None and str(text).strip()), None)
    elif _is_message(one):
        value = one
    value = turn_text(value) if field in ("response", "reference") else value
    if isinstance(value, bool | bytes | list | tuple | dict):
        raise ValueError(f"{field} is not text")
    if field == "reference" and value == "NO REF":  # how sets of DSTC10 write that there is none
        return ""
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold which field.

    fields: field → its columns. scores: criterion → its columns, one per rater. separator: the text between the turns
    of a context. decimal: the sign before a score's decimals. speakers: whether turns begin with their speakers, which
    are removed. unnamed_raters: whether several rows of one response are ratings of raters without a name: no column
    holds raters, but `--map` names the dialogue, or a column is named like one of raters and has another value in
    nearly every row. told: a sentence for users about which columns were read. answers: whether the response is the
    last message of a chat; a chat whose last message is a user's has none.
    """

    fields: Mapping[str, tuple[str, ...]]
    scores: Mapping[str, tuple[str, ...]]
    separator: str
    decimal: str
    unnamed_raters: bool
    told: str
    speakers: bool = False
    answers: bool = False

    @classmethod
    def of(
        cls,
        path: Path,
        header: Sequence[str],
        rows: Sequence[Values],
        mapping: Mapping[str, str] | None,
        aliases: Mapping[str, Sequence[str]] = ALIASES,
        known: Sequence[str] = OF_RESPONSES,
    ) -> Columns:
        """Find the columns of each field. aliases: field → well-known names. known: the fields that may be mapped.

        AnnotationError on a mapping of another field, a repeated column, a mapped column that is missing, or no column
        for a needed field: context, response and, if known, score."""
        fields = checked_mapping(mapping, known, AnnotationError)
        signs = {name: fields.pop(name)[0] for name in SIGNS if name in fields}
        several = ["context", "score", *(name for name in fields if name.startswith(SCORE_OF))]
        if wrong := [name for name in fields if len(fields[name]) > 1 and name not in several]:
            raise AnnotationError(f"--map {wrong[0]}={'+'.join(fields[wrong[0]])}: {wrong[0]} is one column")
        if len(signs.get("decimal", ".")) > 1:
            raise AnnotationError(f"--map decimal={signs['decimal']}: give one sign, such as decimal=,")
        named = [column for column in header if column]
        mapped = {column for columns in fields.values() for column in columns}
        nested = [one for one in mapped - set(named) if any(cell(row, one) not in (None, []) for row in rows)]
        there = {field: [one for one in of if one not in nested] for field, of in fields.items()}
        check_header(path, named, there, AnnotationError)
        needed = [name for name in ("context", "response", "score") if name in known]
        given = {*fields, "score"} if len(several) > 2 else {*fields}
        guessed = {name: aliases[name] for name in known if name in aliases and name not in given}
        try:
            fields |= _known_columns(
                guessed, [one for one in reversed(named) if one not in mapped], rows, needed
            )
        except AnnotationError as error:
            raise AnnotationError(f"{path}: {error}") from None
        texts_known = {"context", "response"} & fields.keys()
        chats = (
            [] if texts_known else [one for one in named if ends_with_answer([row.get(one) for row in rows])]
        )
        if answers := len(chats) == 1:
            fields |= {"context": (chats[0],), "response": (f"{chats[0]}.-1",)}
        scores = {name.removeprefix(SCORE_OF): fields[name] for name in several if name.startswith(SCORE_OF)}
        scores |= {column: (column,) for column in fields.get("score", ())}
        scores = {
            of: tuple(one for name in names for one in _of_raters(name, rows)) for of, names in scores.items()
        }
        if missing := [name for name in needed if name not in fields and not (name == "score" and scores)]:
            wide = [one for one in named if _ONE_OF_SEVERAL.fullmatch(one)]
            if missing == ["score"] and len(wide) > 1:
                raise AnnotationError(
                    f"{path}: no column is known as score; if each rater has one, give --map "
                    f"score.overall={'+'.join(wide)}"
                )
            raise unknown_columns(
                path, named, missing, AnnotationError, example=dict(rows[0]) if rows else None
            )
        if "criterion" in fields and len(scores) > 1:
            raise AnnotationError(
                f"{path}: with a criterion column a row has one score, not {len(scores)} ({', '.join(scores)}); "
                "name one with --map score=COLUMN"
            )
        separator, mark = signs.get("separator", ""), ""
        for written, meant in _ESCAPES:
            separator = separator.replace(written, meant)
        if not separator:
            mark = _mark_between(cell(row, fields["context"][0]) for row in rows)
        unnamed = "rater" not in fields and (
            "dialogue" in given or any(_last_part(column) in ALIASES["rater"] for column in named)
        )
        used = {column for columns in fields.values() for column in columns}
        used |= {column.split(".")[0] for column in used - set(named)}
        sentence = told(fields, [column for column in header if column not in used])
        sentence += f"; turns end at {mark!r}" if mark else ""
        sentence += "; messages before the last one are context alone" if answers else ""
        separator, decimal = separator or mark or "\n", signs.get("decimal", ".")
        read = cls(fields, scores, separator, decimal, unnamed, sentence, answers=answers)
        if read._name_speakers(rows):
            return replace(read, speakers=True, told=f"{sentence}; speakers before turns are taken off")
        return read

    def _name_speakers(self, rows: Sequence[Values]) -> bool:
        """Whether at least 90% of the first contexts begin with a speaker."""
        contexts = [self.values(row)["context"] for row in rows[:_FIRST_ROWS]]
        firsts = [
            next((one for one in turns if one and one.strip()), "")
            for turns in contexts
            if isinstance(turns, list) and turns and all(isinstance(one, str | None) for one in turns)
        ]
        return bool(firsts) and sum(_SPEAKER.match(one) is not None for one in firsts) >= 0.9 * len(contexts)

    def values(self, row: Values) -> dict[str, Any]:
        """The values of a row by field, without the scores. If the context has several columns, each holds a turn, a
        list of turns, or turns between separators. If the response is in the context's list, as `messages.-1.content`
        is in `messages`, the context ends before it."""
        found = {name: cell(row, of[0]) for name, of in self.fields.items()}
        if self.answers and isinstance(found["response"], Mapping) and _of_user(found["response"]):
            found["response"] = None
        if len(of := self.fields["context"]) > 1:
            found["context"] = []
            for value in (opened(cell(row, column)) for column in of):
                marked = isinstance(value, str) and self.separator != "\n"
                said = value.split(self.separator) if marked else value
                found["context"] += said if isinstance(said, list) else [said]
        if isinstance(found["context"], str):
            found["context"] = listed(found["context"], self.separator)
        if isinstance(found["context"], list):
            found["context"] = found["context"][: self._end_of_context]
        if self.speakers:
            texts, response = found["context"], found["response"]
            if isinstance(texts, list) and all(isinstance(one, str) for one in texts):
                found["context"] = without_speakers(texts)
            if isinstance(response, str):
                found["response"] = without_speaker(response)
        return found

    @cached_property
    def _end_of_context(self) -> int | None:
        """Index of the response in the context's list; None if it is not in it."""
        (context, *more), (response, *_) = self.fields["context"], self.fields["response"]
        before, _, inside = response.partition(f"{context}.")
        place = None if before or more else re.match(r"-?\d+", inside)
        return int(place[0]) if place else None

    def cells(self, row: Values) -> dict[str, list[Any]]:
        """Criterion → the cells of a row that hold its scores, with a point before decimals."""

        def pointed(value: Any) -> Any:
            value = opened(value)
            return value.replace(self.decimal, ".") if isinstance(value, str) else value

        return {name: [pointed(cell(row, column)) for column in of] for name, of in self.scores.items()}


def _mark_between(contexts: Iterable[Any]) -> str:
    """The first of _SEPARATORS that more than half of the contexts contain, "" if there is none.

    There is none if a context has a line break, which then separates turns, or `<s>`, of which `</s>` is the end.
    """
    texts = [one for one in contexts if isinstance(one, str) and isinstance(opened(one), str)]
    if any("\n" in text.strip() or "<s>" in text for text in texts):
        return ""
    return next((mark for mark in _SEPARATORS if 2 * sum(mark in text for text in texts) > len(texts)), "")


def cell(row: Values, column: str) -> Any:
    """The value of a row in a column, or at a path such as `message.content`; a list of values at a path with `*`."""
    if column in row or "." not in column:
        return row.get(column)
    path = tuple(column.split("."))
    found = values_at(row, path)
    return list(found) if MEMBERS in path else next(found, None)


def _of_raters(column: str, rows: Sequence[Values]) -> list[str]:
    """The column of scores, or for `NAME.*`, where NAME holds objects of scores by rater, one path for each rater."""
    parent, _, last = column.rpartition(".")
    named = [cell(row, parent) for row in rows] if last == MEMBERS else []
    raters = dict.fromkeys(key for one in named if isinstance(one, Mapping) for key in one)
    return [f"{parent}.{rater}" for rater in raters] or [column]


def _last_part(column: str) -> str:
    return normalise(column.rpartition(".")[2])


def _known_columns(
    aliases: Mapping[str, Sequence[str]], free: Sequence[str], rows: Sequence[Values], needed: Sequence[str]
) -> dict[str, tuple[str]]:
    """Field → the column that is taken for it: one with a well-known name whose values may be those of the field.

    aliases: field → its names, best first. free: the columns that `--map` does not name, the last one first. If the
    values of all columns with a needed field's names contradict it, the first column is taken, so that a message can
    name the wrong value. AnnotationError if two columns may be the context, or several may hold the scores of people.
    """
    last = Counter(map(_last_part, free))  # columns such as Input.context are also found by `context`
    by_name = {by_words(column): column for column in free}
    by_name |= {_last_part(column): column for column in free if last[_last_part(column)] == 1}
    by_name |= {normalise(column): column for column in free}
    known: dict[str, tuple[str]] = {}
    for field, names in aliases.items():
        candidates = [by_name[name] for name in names if name in by_name]
        if field == "score":
            people = [column for column in free[::-1] if _is_of_people(column)]
            # Other columns with a dot, such as Input.score, hold what was shown to people, or a model's scores.
            candidates = [one for one in candidates if "." not in one or normalise(one).startswith("answer_")]
            # Numbers in a column called human may be scores or numbers of raters.
            human = [
                one
                for one in free
                if normalise(one) == "human" and any(_is_number(row.get(one)) for row in rows)
            ]
            candidates = list(dict.fromkeys([*people, *candidates, *human]))
        texts = [known[name][0] for name in ("context", "response") if name in known]
        kept = [column for column in candidates if _may_hold(field, column, rows, texts)]
        if field == "score":
            # A column of people that holds other words is refused by its values; no model's scores take its place.
            kept = kept if set(kept) & set(people) else _filled(people, rows) or kept
            kept = [_of_people(kept, rows)] if kept else []
        varied = [one for one in kept if len({str(row.get(one)) for row in rows}) > 1]
        if field == "context" and len(varied) > 1:
            first, second, *_ = varied
            raise AnnotationError(
                f"the context may be in {first!r} or {second!r}; say --map context={first} or context={second}, or "
                f"context={first}+{second} if the latter is the last turn"
            )
        if kept or (candidates and field in needed):
            known[field] = ((kept or candidates)[0],)
    return known


def _is_of_people(column: str) -> bool:
    return _OF_PEOPLE.fullmatch(normalise(column)) is not None


def _of_people(columns: Sequence[str], rows: Sequence[Values]) -> str:
    """The column with the scores of people, among columns that may hold scores: by its name, or the only one filled.

    AnnotationError if there are several such columns, since some may hold a model's scores.
    """
    named = list(filter(_is_of_people, columns)) or columns
    filled = _filled(named, rows) or named[:1]
    if len(filled) > 1:
        places = " or ".join(map(repr, filled))
        raise AnnotationError(
            f"the scores of people may be in {places}; name the one with --map score=COLUMN"
        )
    return filled[0]


def _filled(columns: Sequence[str], rows: Sequence[Values]) -> list[str]:
    """The columns in which some row has a value."""
    return [one for one in columns if any(row.get(one) not in (None, "") for row in rows)]


def _may_hold(field: str, column: str, rows: Sequence[Values], texts: Sequence[str]) -> bool:
    """Whether the values of a column may be those of a field. texts: the columns of contexts and responses.

    context, response, reference: not mostly numbers, since surveys also call the answer on a scale a response. score:
    mostly numbers, lists, words of WORDS, or short texts with a digit. model, rater, criterion: short names, each with
    two or more responses on average, which is not required if all responses have one context. model: no lists or
    objects. criterion: unless its column is called so, some response occurs with several criteria.
    """
    given = [row for row in rows if row.get(column) not in (None, "")]
    values = [row[column] for row in given]
    if field in ("context", "response", "reference"):
        return len(values) < FEW or 2 * sum(map(_is_number, values)) <= len(values)
    if field == "score":
        labels = [value.strip().lower() for value in values if isinstance(value, str)]
        scores = [one for one in labels if len(one) <= _LONGEST_SCORE and any(map(str.isdigit, one))]
        return 2 * (len(labels) - len(scores) - sum(one in WORDS for one in labels)) <= len(values)
    if field in ("model", "rater", "criterion"):
        about = [tuple(str(row.get(text)) for text in texts) for row in given]
        names = [str(value) for value in values]
        uses = len(set(zip(names, about, strict=True)))
        short = sum(map(len, names)) <= _LONGEST_NAME * len(names)
        if field == "model" and any(isinstance(value, list | dict) for value in values):
            return False
        if field == "criterion" and normalise(column) != field and len(set(about)) == uses:
            return False
        return short and (uses < FEW or 2 * len(set(names)) <= uses or len({one[:1] for one in about}) == 1)
    return True


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
