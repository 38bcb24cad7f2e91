"""Annotated sets in the layouts in which their authors publish them, each a function from a file to its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import GROUND_TRUTH_SYSTEMS
from ssrem.annotated_sets.base import Layout, Row, Source, counted, text_of
from ssrem.errors import AnnotationError
from ssrem.readers.fields import normalise
from ssrem.readers.table_rows import TableFile

WHOLE_DIALOGUE = "rating of a whole dialogue"

_FED_SPEAKER = re.compile(r"(?:User|System):\s*", re.IGNORECASE)
_CONTURE_SPEAKER = re.compile(r"\s*(?:User|Chatbot)\s*:\s*", re.IGNORECASE)
_HUMOD_SPEAKER = re.compile(r"\bSpeaker\s*\d+\s*:\s*")
_HUMOD = ("dialogue_id", "dialogue_context", "reply", "label", "user_relevance_score")
_CONTEXTS, _RESPONSES, _REFERENCES, _SCORES = (f"human_{what}.txt" for what in ("ctx", "hyp", "ref", "score"))
_NO_RATINGS = ("response", "model", "annotator", "annotators")
_OF_TURNS = ("user", "chatbot", "id", "turn", "turn_id", "index")
_RELEVANCE = {"positive_responses": 1, "adversarial_negative_responses": 0, "random_negative_responses": 0}


def _is_eval(source: Source) -> bool:
    """Also JSON that is broken or holds no objects: the reader's message says what is wrong with it."""
    named = source.format is None and re.search(r"\.jsonl?(\.(gz|zst|bz2))?\Z", source.path.name.lower())
    known = not source.first or {"context", "response", "annotations"} & source.first.keys()
    return bool(known and (named or source.format in ("json", "jsonl")))


@Layout(_is_eval)
def eval_json(source: Source) -> Iterator[Row]:
    """`*_eval.json`, the project's own: a JSON list, or one object a line, of responses with `annotations`."""
    for where, row in source.objects():
        if "context" not in row and row.get("response"):
            keys = ", ".join(list(row)[:20])
            raise AnnotationError(
                f"{where}: no context; the keys are {keys}; --layout jsonl takes --map context=KEY and others"
            )
        system = next((row[name] for name in ("model", "model_name", "system") if name in row), None)
        context, response, reference = (row.get(name) for name in ("context", "response", "reference"))
        yield Row(where, context, response, row.get("annotations"), system, reference, row.get("dialogue_id"))


@Layout(lambda source: "context" in source.first and isinstance(source.first.get("responses"), list))
def usr(source: Source) -> Iterator[Row]:
    """USR (Mehri and Eskenazi, ACL 2020): a context, a fact and the rated responses of every system a row.

    What a response has besides text and model are its ratings, or objects with them. The reference is the text of the
    row's ground-truth system. The fact that responses were to use is not part of the context.
    """
    for number, (where, row) in enumerate(source.objects()):
        listed = []
        for at, response in enumerate(_listed(where, row, "responses"), 1):
            place = f"{where}, response {at}"
            one = _object(place, response)
            scores = {of: value for of, value in one.items() if of.lower() not in _NO_RATINGS}
            for name in [of for of, given in scores.items() if isinstance(given, dict)]:
                scores |= scores.pop(name)
            listed.append((place, text_of(place, one, "response"), scores, text_of(place, one, "model")))
        true = next((text for _, text, _, who in listed if who.lower() in GROUND_TRUTH_SYSTEMS), None)
        for place, text, scores, model in listed:
            yield Row(place, row.get("context"), text, scores, model, true, number)


def _is_fed(source: Source) -> bool:
    context = source.first.get("context")
    first = context[0] if isinstance(context, list) and context else context
    return isinstance(first, str) and "annotations" in source.first and _FED_SPEAKER.match(first) is not None


@Layout(_is_fed)
def fed(source: Source) -> Iterator[Row]:
    """FED (Mehri and Eskenazi, SIGDIAL 2020): turns begin with their speaker, who is removed; a line that names no
    speaker continues the turn before it. Rows without a response rate whole dialogues."""
    for where, row in source.objects():
        written = row.get("context")
        if isinstance(written, list) and all(isinstance(turn, str) for turn in written):
            written = "\n".join(written)
        lines: list[str] = []
        for line in text_of(where, {"context": written}, "context").split("\n"):
            if (speaker := _FED_SPEAKER.match(line)) or not lines:
                lines.append(line[speaker.end() :] if speaker else line)
            else:
                lines[-1] += f"\n{line}"
        text = "" if row.get("response") is None else text_of(where, row, "response")
        text = _FED_SPEAKER.sub("", text, count=1).strip()
        yield Row(where, lines, text, row.get("annotations"), row.get("system"))


@Layout(
    lambda source: (
        {"Context", "Response", "HumanScores"} <= source.first.keys() or bool(_models(source.path))
    ),
)
def grade(source: Source) -> Iterator[Row]:
    """GRADE (Huang et al., EMNLP 2020): `human_judgement.json`, or a data set's folder with one a model.

    The files do not name what raters scored from 1 to 5, the paper does: coherence.
    """
    if source.path.is_dir():
        yield from _grade_folder(source)
        return
    rows, part = source.objects(), source.part
    known = sorted({str(row.get("Dataset")) for _, row in rows})
    if not part and len(known) > 1:
        raise AnnotationError(
            f"{source.path} holds the sets {', '.join(known)}; name one, as in --layout grade:{known[0]}"
        )
    if part and part not in known:
        raise AnnotationError(f"{source.path} holds no set {part!r}; it holds {', '.join(known)}")
    for number, (where, row) in enumerate(rows):
        if not part or str(row.get("Dataset")) == part:
            context, text = text_of(where, row, "Context").split("|||"), text_of(where, row, "Response")
            scores, id = {"coherence": row.get("HumanScores")}, row.get("ID", number)
            yield Row(where, context, text, scores, row.get("DialogModel"), dialogue=id)


def _models(path: Path) -> list[Path]:
    """The models' folders, each with contexts and responses; the folder itself may be one."""
    files = [path / _CONTEXTS] if (path / _CONTEXTS).exists() else sorted(path.glob(f"*/{_CONTEXTS}"))
    return [file.parent for file in files if (file.parent / _RESPONSES).exists()]


def _grade_folder(source: Source) -> Iterator[Row]:
    """Each model's responses with the raters' mean; scores may also lie in the tree `human_score` beside `eval_data`,
    references are optional."""
    source.files = []
    for model in _models(source.path):
        files = [model / name for name in (_CONTEXTS, _RESPONSES, _SCORES, _REFERENCES)]
        if not files[2].exists():
            files[2] = model.parent.parent.parent / "human_score" / model.parent.name / model.name / _SCORES
        if not files[3].exists():
            del files[3]
        source.files += files
        lines = [TableFile(file).text.removesuffix("\n").split("\n") for file in files]
        for file, own in zip(files, lines, strict=True):
            if len(own) != len(lines[0]):
                sizes = f"{counted(len(own), 'line')}, {_CONTEXTS} {len(lines[0]):,}"
                raise AnnotationError(f"{file} has {sizes}; each line is one response, fetch the files again")
        for number, (context, text, score, *reference) in enumerate(zip(*lines, strict=True)):
            where, id, true = (
                f"{files[2]}, row {number + 1}",
                f"{model.name}:{number}",
                list(map(str.strip, reference)),
            )
            yield Row(where, context.split("|||"), text.strip(), {"coherence": score}, model.name, true, id)


@Layout(
    lambda source: source.format == "tsv" and source.file is not None and set(_HUMOD) <= source.file.names
)
def humod(source: Source) -> Iterator[Row]:
    """HUMOD (Merdivan et al., Applied Sciences 2020): tab-separated, one rater's score a row.

    A dialogue id is a context with a reply. Label 0 is the film's own reply, label 1 one drawn at random, whose
    reference is the film's. The replies that raters wrote themselves are not read. A few published rows miss a tab
    behind the columns that are read here, and the rows of a reply differ in punctuation now and then.
    """
    header, *lines = source.text.split("\n")
    names = [normalise(name) for name in header.split("\t")]
    if not set(_HUMOD) <= set(names):
        raise AnnotationError(
            f"{source.path}, line 1: expected the tab-separated columns {', '.join(_HUMOD)}"
        )
    places = [names.index(name) for name in _HUMOD]
    replies: dict[str, tuple[str, Row]] = {}
    rows = []
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        where, cells = f"{source.path}, line {number}", [cell.strip() for cell in line.split("\t")]
        if not max(places) < len(cells) <= len(names):
            raise AnnotationError(
                f"{where}: {len(cells)} cells between tabs, the header has {len(names)}; fetch the file again"
            )
        id, context, reply, label, score = (cells[place] for place in places)
        if label not in ("0", "1"):
            raise AnnotationError(f"{where}: the label is {label!r}, not 0 (the film's reply) or 1 (random)")
        turns, text = _HUMOD_SPEAKER.split(context), _HUMOD_SPEAKER.sub("", reply, count=1).strip()
        system = "random" if label == "1" else "ground-truth"
        letters = re.sub(r"\W+", "", f"{label}{''.join(turns)}{text}")
        first = replies.setdefault(
            id, (letters, Row(where, turns, text, {}, system, dialogue=id, joined=True))
        )
        if first[0] != letters:
            raise AnnotationError(
                f"{where}: another context or reply than at {first[1].where}, of the same id"
            )
        rows.append(replace(first[1], where=where, scores={"relevance": score}))
    true = {tuple(row.context): row.response for row in rows if row.model == "ground-truth"}
    yield from (replace(row, reference=true.get(tuple(row.context))) for row in rows)


@Layout(lambda source: _is_conture(source.first.get("turns")))
def conture(source: Source) -> Iterator[Row]:
    """ConTurE (Ghazarian et al., Findings of ACL 2022): dialogues of a user and a chatbot, whose answers are rated.

    Ratings of whole dialogues are counted and left out.
    """
    for number, (where, dialogue) in enumerate(source.objects()):
        source.left_out[WHOLE_DIALOGUE] += bool(dialogue.get("dialog_ratings"))
        context: list[str] = []
        id = dialogue.get("dialog_id", number)
        for at, turn in enumerate(_listed(where, dialogue, "turns"), 1):
            place = f"{where}, turn {at}"
            said = _object(place, turn)
            user, answer = (text_of(place, said, of) if said.get(of) else "" for of in ("user", "chatbot"))
            context = [*context, _CONTURE_SPEAKER.sub("", user, count=1)]
            answer = _CONTURE_SPEAKER.sub("", answer, count=1)
            scores = {of: value for of, value in said.items() if normalise(of) not in _OF_TURNS}
            yield Row(place, context, answer, scores, dialogue.get("model"), dialogue=id)
            context = [*context, answer]


def _is_conture(turns: Any) -> bool:
    first = turns[0] if isinstance(turns, list) and turns else None
    return isinstance(first, dict) and {"user", "chatbot"} <= first.keys()


def _is_zhao(source: Source) -> bool:
    first = next(iter(source.first.values()), None)
    return isinstance(first, dict) and isinstance(first.get("responses"), dict) and "context" in first


@Layout(_is_zhao)
def zhao(source: Source) -> Iterator[Row]:
    """The sets of Zhao et al. (ACL 2020): one JSON object of dialogues by their ids, each with context and reference as
    [speaker, text], and the `uttr` of systems with workers' `scores`, of which marks of outliers are none."""
    for name, dialogue in ((name, value) for _, row in source.objects() for name, value in row.items()):
        where = f"{source.path}, dialogue {name}"
        try:
            reference = dialogue["reference"][1] if dialogue.get("reference") else None
            context = [text for _, text in dialogue["context"]]
            for system, response in dialogue["responses"].items():
                text = text_of(f"{where}, response of {system}", response, "uttr")
                for worker, given in (response.get("scores") or {None: {}}).items():
                    scores = {of: score for of, score in given.items() if not of.endswith("_is_outlier")}
                    yield Row(where, context, text, scores, system, reference, name, worker, joined=True)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise AnnotationError(f"{where}: expected context, reference and responses of systems") from None


@Layout(lambda source: {"context", "positive_responses"} <= source.first.keys())
def dailydialog_plusplus(source: Source) -> Iterator[Row]:
    """DailyDialog++ (Sai et al., TACL 2020): contexts with lists of responses, whose names are the labels: 1 for one
    that a person wrote as relevant, 0 for one that was written or drawn as irrelevant. The kind is the system."""
    for number, (where, row) in enumerate(source.objects()):
        context, id = row.get("context"), row.get("id", number)
        for name, label in _RELEVANCE.items():
            for response in _listed(where, row, name) if name in row else []:
                text, kind = text_of(where, {name: response}, name), name.removesuffix("_responses")
                yield Row(where, context, text, {"relevance": label}, kind, dialogue=id)


def _listed(where: str, row: Any, name: str) -> list[Any]:
    if not isinstance(row.get(name), list):
        raise AnnotationError(f"{where}: no list of {name}")
    return list(row[name])


def _object(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AnnotationError(f"{where}: expected an object, not {value!r:.60}")
    return value
