"""The layouts in which authors publish annotated sets; each is a function that yields the rows of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ssrem.annotated_sets.annotated import GROUND_TRUTH_SYSTEMS
from ssrem.annotated_sets.base import Layout, Row, Source, each_rater, text_of
from ssrem.annotated_sets.columns import Values, as_text, listed, turns, without_speaker, without_speakers
from ssrem.errors import AnnotationError, counted, short_repr
from ssrem.readers.fields import ALIASES, SILENT_ROLES, normalise, turn_text
from ssrem.readers.json_values import opened

PREFERENCE = "preference"
"""Criterion of votes: 1 for the response that a rater prefers, 0 for the other, and 0.5 for both if they are tied."""

NO_WINNER = "vote without a winner"
AGAIN = "vote of a rater on a pair again, averaged with those before"
SAME = "vote on two responses that are the same"
OTHER_ANSWERS = "answer before, to which the other system's differs"
_WON_BY_A = {
    **dict.fromkeys(("model_a", "a", "response_a", "response a"), 1.0),
    **dict.fromkeys(("model_b", "b", "response_b", "response b"), 0.0),
    **dict.fromkeys(
        ("tie", "tie (bothbad)", "tie (both bad)", "both_bad", "both bad", "neither", "1.5"), 0.5
    ),
    **dict.fromkeys(("both_good", "both good", "both"), 0.5),
}
_TWO = {
    **dict.fromkeys(("response", "answer", "output", "completion"), "response"),
    **{"conversation": "conversation", "model": "model", "generator": "model"},
}
"""Name of the columns of two sides, as `answer` of `answer_1` and `answer_2` → what it is called in votes."""
_VERDICTS = ("winner", "preference", "preferred", "better_response_id")
_NOBODY = ("", "none", "null", "error")
_VOTES = (
    {"winner", "model_a", "model_b", "conversation_a", "conversation_b"},
    {"winner", "response_a", "response_b"},
    {"winner_model_a", "winner_model_b", "prompt", "response_a", "response_b"},
    {"chosen", "rejected"},
)
WHOLE_DIALOGUE = "rating of a whole dialogue"

_FED_SPEAKER = re.compile(r"(?:User|System):\s*", re.IGNORECASE)
_TRANSCRIPT = re.compile(r"(?:\A|\n\n)\s*(Human|Assistant):")
_GRADE = {"Context", "Response", "HumanScores"}
_NO_RATINGS = ("response", "model", "annotator", "annotators")
_OF_TURNS = ("user", "chatbot", "id", "turn", "turn_id", "index")
_RELEVANCE = {"positive_responses": 1, "adversarial_negative_responses": 0, "random_negative_responses": 0}


def _is_eval(source: Source) -> bool:
    """Whether this is JSON of rated responses, or JSON that is broken or holds no objects, which the reader reports."""
    named = source.format is None and re.search(r"\.jsonl?(\.(gz|zst|bz2))?\Z", source.path.name.lower())
    known = not source.first or {"context", "response", "annotations"} & source.first.keys()
    return bool(known and (named or source.format in ("json", "jsonl")))


@Layout(_is_eval)
def eval_json(source: Source) -> Iterator[Row]:
    """`*_eval.json`, this project's own layout: a JSON list, or an object per line, of responses with `annotations`.

    A list `raters` names who gave the scores, in the order of each list of scores."""
    for number, (where, row) in enumerate(source.objects()):
        lacking = "context" if "context" not in row and row.get("response") else "response"
        if lacking == "context" or not {"response", "annotations"} & row.keys():
            keys = ", ".join(list(row)[:20])
            raise AnnotationError(
                f"{where}: no {lacking}; the keys are {keys}; --layout jsonl takes --map {lacking}=KEY and others"
            )
        system = next((row[name] for name in ("model", "model_name", "system") if name in row), None)
        context, response, reference = (row.get(name) for name in ("context", "response", "reference"))
        scores: Any = row.get("annotations")
        raters, dialogue = row.get("raters"), row.get("dialogue_id")
        named = isinstance(raters, list) and isinstance(scores, dict)
        for rater, given in each_rater(where, raters if named else None, scores):
            joined = rater is not None
            yield Row(where, context, response, given, system, reference, dialogue, rater, joined, number)


@Layout(lambda source: "context" in source.first and isinstance(source.first.get("responses"), list))
def usr(source: Source) -> Iterator[Row]:
    """USR (Mehri and Eskenazi, ACL 2020): each row has a context, a fact and the rated responses of every system.

    The values of a response besides its text, model and annotators are ratings, or objects that hold ratings. The
    reference is the text of the row's ground-truth system. The fact that responses were to use is not part of the
    context.
    """
    for number, (where, row) in enumerate(source.objects()):
        rated = []
        for at, response in enumerate(_listed(where, row, "responses"), 1):
            place = f"{where}, response {at}"
            one = _object(place, response)
            scores = {of: value for of, value in one.items() if of.lower() not in _NO_RATINGS}
            for name in [of for of, given in scores.items() if isinstance(given, dict)]:
                scores |= scores.pop(name)
            rated.append((place, text_of(place, one, "response"), scores, text_of(place, one, "model")))
        true = next((text for _, text, _, who in rated if who.lower() in GROUND_TRUTH_SYSTEMS), None)
        for place, text, scores, model in rated:
            yield Row(place, row.get("context"), text, scores, model, true, number)


def _is_fed(source: Source) -> bool:
    context = source.first.get("context")
    first = context[0] if isinstance(context, list) and context else context
    return isinstance(first, str) and "annotations" in source.first and _FED_SPEAKER.match(first) is not None


@Layout(_is_fed)
def fed(source: Source) -> Iterator[Row]:
    """FED (Mehri and Eskenazi, SIGDIAL 2020): turns begin with their speaker, which is removed; a line that names no
    speaker continues the turn before it. Rows without a response rate whole dialogues."""
    for where, row in source.objects():
        written = row.get("context")
        if isinstance(written, list) and all(isinstance(turn, str) for turn in written):
            written = "\n".join(written)
        lines = without_speakers(text_of(where, {"context": written}, "context").split("\n"))
        text = "" if row.get("response") is None else text_of(where, row, "response")
        yield Row(where, lines, without_speaker(text).strip(), row.get("annotations"), row.get("system"))


@Layout(lambda source: source.first.keys() >= _GRADE)
def grade(source: Source) -> Iterator[Row]:
    """GRADE (Huang et al., EMNLP 2020): `human_judgement.json`.

    The file does not name the criterion, which raters scored from 1 to 5; the paper calls it coherence.
    """
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
            context, answer = [*context, without_speaker(user)], without_speaker(answer)
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
    """The sets of Zhao et al. (ACL 2020): one JSON object, id of a dialogue → dialogue, each with context and reference
    in the form [speaker, text], and for each system a response `uttr` with the `scores` of workers. Marks of outliers
    beside the scores are ignored."""
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
    """DailyDialog++ (Sai et al., TACL 2020): contexts with lists of responses. The list decides the label: 1 for
    responses that people wrote as relevant, 0 for those written or drawn as irrelevant. Its name serves as system."""
    for number, (where, row) in enumerate(source.objects()):
        context, id = row.get("context"), row.get("id", number)
        for name, label in _RELEVANCE.items():
            for response in _listed(where, row, name) if name in row else []:
                text, kind = text_of(where, {name: response}, name), name.removesuffix("_responses")
                yield Row(where, context, text, {"relevance": label}, kind, dialogue=id)


def _is_votes(source: Source) -> bool:
    """Whether rows are votes on two responses, and not scored responses with the winner in another column."""
    named = source.mapping or {"response", "score"} <= source.first.keys()
    first = _lettered(source.first)
    return not named and any(first.keys() >= fields for fields in _VOTES)


@Layout(_is_votes)
def pairwise(source: Source) -> Iterator[Row]:
    """Votes on pairs of responses, as in MT-Bench and Chatbot Arena (Zheng et al., NeurIPS 2023).

    The two responses of a pair become rated responses of one dialogue, named after the pair. Votes on the same two
    responses in either order are votes on one pair. Each response has a row for each rater. Without the columns
    `model_a` and `model_b` the systems are unknown.
    """
    pairs: dict[Any, tuple[str, dict[str, list[float]]]] = {}  # pair → its first place, votes by rater
    number = 0
    for where, written in source.objects():
        try:
            row = _as_vote(where, written)
        except KeyError as missing:
            raise AnnotationError(f"{where}: no {missing.args[0]}") from None
        winner = str(row.get("winner") or "").strip().lower()
        names = [str(row.get(f"model_{side}") or "").lower() for side in "ab"]
        if winner and winner in names and names[0] != names[1]:
            winner = "ab"[names.index(winner)]
        if winner in _NOBODY:
            source.left_out[NO_WINNER] += 1
            continue
        if winner not in _WON_BY_A:
            known = ", ".join(_WON_BY_A)
            raise AnnotationError(f"{where}: the winner is {short_repr(winner)}, not one of {known}")
        context, answers = _judged(source, where, row)
        sides = [(str(row.get(f"model_{side}") or ""), one) for side, one in zip("ab", answers, strict=True)]
        if sides[0] == sides[1]:
            source.left_out[SAME] += 1
            continue
        key = (str(row.get("question_id")), str(row.get("turn", "")), context, *sorted(sides))
        _, votes = pairs.setdefault(key, (where, {}))
        named = (row[name] for name in row if normalise(name) in ("judge", *ALIASES["rater"]))
        rater = str(next(named, None) or f"vote {len(votes) + 1}")
        source.left_out[AGAIN] += rater in votes
        number += 1
        preference = _WON_BY_A[winner]
        votes.setdefault(rater, []).append(preference if sides[0] == key[3] else 1 - preference)
    source.columns = f"{counted(number, 'vote')} on {counted(len(pairs), 'pair')} of responses"
    for number, ((question, _, context, *sides), (where, votes)) in enumerate(pairs.items(), 1):
        models = [model for model, _ in sides]
        about = [question if question != "None" else "", " / ".join(models) if all(models) else ""]
        dialogue = f"{number}: {', '.join(filter(None, about))}".removesuffix(": ")
        for first, (model, text) in zip((True, False), sides, strict=True):
            for rater, given in votes.items():
                won = sum(given) / len(given)
                scores = {PREFERENCE: won if first else 1 - won}
                yield Row(where, context, text, scores, model or None, None, dialogue, rater, joined=True)


def _as_vote(where: str, row: Values) -> Values:
    """A row as a vote, with `winner` and the responses or conversations of the sides a and b. Two other forms are
    converted: a chosen and a rejected response; and that of LMSYS's set on Kaggle, a mark for the side that won with a
    list of the user's turns and a list of each system's answers."""
    if "winner_model_a" in row:
        won = [str(row[f"winner_model_{side}"]).strip().lower() in ("1", "1.0", "true") for side in "ab"]
        asked, *answered = (_texts(where, row, name) for name in ("prompt", "response_a", "response_b"))
        talks = {
            f"conversation_{side}": [
                {"role": role, "content": text}
                for turn in zip(asked, answers, strict=False)
                for role, text in zip(("user", "assistant"), turn, strict=True)
            ]
            for side, answers in zip("ab", answered, strict=True)
        }
        return {**row, **talks, "winner": "a" if won[0] else "b" if won[1] else "tie"}
    row = _lettered(row)
    if "winner" in row or "chosen" not in row:
        return row
    sides = [opened(one) for one in (row["chosen"], row["rejected"])]
    if all(isinstance(side, str) and _TRANSCRIPT.match(side) for side in sides):
        sides = [_messages_in(side) for side in sides]
    kind = "conversation" if all(isinstance(side, list) for side in sides) else "response"
    models = {"model_a": row.get("chosen_model"), "model_b": row.get("rejected_model")}
    return {**row, **models, "winner": "a", f"{kind}_a": sides[0], f"{kind}_b": sides[1]}


def _lettered(row: Values) -> Values:
    """A row with the columns of its two sides, such as AlpacaEval's `output_1`, `output_2` and `preference`, renamed to
    `response_a`, `response_b` and `winner`; a row without such columns is unchanged."""
    for sides in (("a", "b"), ("1", "2"), ("0", "1")):
        there = {of: called for of, called in _TWO.items() if all(f"{of}_{side}" in row for side in sides)}
        if not {"response", "conversation"}.isdisjoint(there.values()):
            called, won = dict[str, Any](), dict[str, str]()
            for letter, side in zip("ab", sides, strict=True):
                called |= {f"{there[of]}_{letter}": row[f"{of}_{side}"] for of in there}
                won |= dict.fromkeys((side, f"{side}.0", *(f"{of}_{side}" for of in there)), letter)
            if (verdict := next((of for of in _VERDICTS if of in row), None)) is not None:
                written = str(row[verdict]).strip().lower()
                called["winner"] = won.get(written, row[verdict])
            return {**row, **called}
    return row


def _messages_in(transcript: str) -> list[dict[str, str]]:
    """The messages of a text in which each begins with `Human:` or `Assistant:` (HH-RLHF, Bai et al. 2022)."""
    _, *parts = _TRANSCRIPT.split(transcript)
    roles = {"Human": "user", "Assistant": "assistant"}
    return [{"role": roles[by], "content": said} for by, said in zip(parts[::2], parts[1::2], strict=True)]


def _judged(source: Source, where: str, row: Values) -> tuple[tuple[str, ...], list[str]]:
    """The context that both conversations share, and the judged answer of each: number `turn`, or by default the last.
    Earlier answers in which the conversations differ are left out of the context, and counted. A row without
    conversations has a context and two responses itself."""
    if "conversation_a" not in row:
        context = next((row[name] for name in row if normalise(name) in ALIASES["context"]), None)
        if context is None:
            raise AnnotationError(
                f"{where}: no context; call the column with what was said before prompt or context"
            )
        try:
            return turns(context), [as_text("response", row.get(f"response_{side}")) for side in "ab"]
        except ValueError as error:
            raise AnnotationError(f"{where}: {error}") from None
    answers, before = [], []
    for side in "ab":
        said = _messages(where, f"conversation_{side}", row.get(f"conversation_{side}"))
        own = [at for at, (role, _) in enumerate(said) if role != "user"]
        judged = re.fullmatch(r"([0-9]{1,9})(?:\.0)?", str(row.get("turn") or ""))
        turn = int(judged[1]) if judged else len(own)
        if not 0 < turn <= len(own):
            raise AnnotationError(f"{where}: conversation_{side} has no answer {turn or 1}")
        answers.append(said[own[turn - 1]][1])
        before.append(said[: own[turn - 1]])
    if [one for one in before[0] if one[0] == "user"] != [one for one in before[1] if one[0] == "user"]:
        raise AnnotationError(f"{where}: the two conversations differ in what the user says")
    shared = [one for one in before[0] if one[0] == "user" or one in before[1]]
    source.left_out[OTHER_ANSWERS] += len(before[0]) + len(before[1]) - 2 * len(shared)
    return tuple(text for _, text in shared), answers


def _messages(where: str, name: str, value: Any) -> list[tuple[str, str]]:
    """(role, text) of each message that somebody said in a conversation, which is a list or a text that holds one."""
    messages = listed(value) if isinstance(value, str) else value
    if not isinstance(messages, list) or not all(isinstance(one, dict) and "role" in one for one in messages):
        raise AnnotationError(f"{where}: {name} is no list of messages with role and content")
    said = [(str(one["role"]), turn_text(one)) for one in messages if one["role"] not in SILENT_ROLES]
    if not all(isinstance(text, str) for _, text in said):
        raise AnnotationError(f"{where}: a message of {name} is not text")
    return [(role, text.strip()) for role, text in said]


def _texts(where: str, row: Values, name: str) -> list[str]:
    """The texts in a cell that holds a list of them, perhaps written as JSON; null becomes an empty text."""
    texts = opened(row[name])
    if not isinstance(texts, list) or not all(isinstance(text, str | None) for text in texts):
        raise AnnotationError(f"{where}: {name} is no list of texts")
    return [text or "" for text in texts]


def _listed(where: str, row: Any, name: str) -> list[Any]:
    if not isinstance(row.get(name), list):
        raise AnnotationError(f"{where}: no list of {name}")
    return list(row[name])


def _object(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AnnotationError(f"{where}: expected an object, not {value!r:.60}")
    return value
