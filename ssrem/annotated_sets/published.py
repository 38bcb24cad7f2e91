"""Annotated sets in the layouts in which their authors publish them, each a function from a file to its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import GROUND_TRUTH_SYSTEMS
from ssrem.annotated_sets.base import Row, Source, counted, layout, text_of
from ssrem.errors import AnnotationError
from ssrem.readers.fields import normalise
from ssrem.readers.table_rows import TableFile

WHOLE_DIALOGUE = "rating of a whole dialogue"

_FED_SPEAKER = re.compile(r"(?:User|System):\s*", re.IGNORECASE)
_CONTURE_SPEAKER = re.compile(r"\s*(?:User|Chatbot)\s*:\s*", re.IGNORECASE)
_HUMOD_SPEAKER = re.compile(r"\bSpeaker\s*\d+\s*:\s*")
_HUMOD = ("dialogue_id", "dialogue_context", "reply", "label", "user_relevance_score")
_CONTEXTS, _RESPONSES, _REFERENCES, _SCORES = (f"human_{what}.txt" for what in ("ctx", "hyp", "ref", "score"))
_RELEVANCE = {"positive_responses": 1, "adversarial_negative_responses": 0, "random_negative_responses": 0}


def _is_eval(source: Source) -> bool:
    """Also JSON that is broken or holds no objects: the reader's message says what is wrong with it."""
    named = source.format is None and re.search(r"\.jsonl?(\.(gz|zst|bz2))?\Z", source.path.name.lower())
    known = not source.first or {"context", "response", "annotations"} & source.first.keys()
    return bool(known and (named or source.format in ("json", "jsonl")))


@layout(_is_eval)
def eval_json(source: Source) -> Iterator[Row]:
    """`*_eval.json`, the project's own: a JSON list, or one object a line, of responses with `annotations`."""
    for where, row in source.objects():
        system = next((row[name] for name in ("model", "model_name", "system") if name in row), None)
        yield where, {**row, "model": system, "dialogue": row.get("dialogue_id")}


@layout(lambda source: "context" in source.first and isinstance(source.first.get("responses"), list))
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
            scores = {
                of: one[of]
                for of in one
                if of.lower() not in ("response", "model", "annotator", "annotators")
            }
            for name in [of for of, given in scores.items() if isinstance(given, dict)]:
                scores |= scores.pop(name)
            listed.append((place, text_of(place, one, "response"), text_of(place, one, "model"), scores))
        true = next((text for _, text, who, _ in listed if who.lower() in GROUND_TRUTH_SYSTEMS), None)
        for place, text, who, scores in listed:
            about = {"dialogue": number, "context": row.get("context"), "reference": true}
            yield place, {**about, "response": text, "model": who, "annotations": scores}


def _is_fed(source: Source) -> bool:
    context = source.first.get("context")
    first = context[0] if isinstance(context, list) and context else context
    return isinstance(first, str) and "annotations" in source.first and _FED_SPEAKER.match(first) is not None


@layout(_is_fed)
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
        about = {"context": lines, "response": _FED_SPEAKER.sub("", text, count=1).strip()}
        yield where, {**row, **about, "model": row.get("system")}


@layout(
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
    if part is None and len(known) > 1:
        raise AnnotationError(
            f"{source.path} holds the sets {', '.join(known)}; name one, as in --layout grade:{known[0]}"
        )
    if part is not None and part not in known:
        raise AnnotationError(f"{source.path} holds no set {part!r}; it holds {', '.join(known)}")
    for number, (where, row) in enumerate(rows):
        if part is None or str(row.get("Dataset")) == part:
            about = {
                "dialogue": row.get("ID", number),
                "context": text_of(where, row, "Context").split("|||"),
            }
            scores = {"model": row.get("DialogModel"), "annotations": {"coherence": row.get("HumanScores")}}
            yield where, {**about, "response": text_of(where, row, "Response"), **scores}


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
            about = {
                "dialogue": f"{model.name}:{number}",
                "context": context.split("|||"),
                "model": model.name,
            }
            said = {"response": text.strip(), "reference": [one.strip() for one in reference]}
            yield f"{files[2]}, row {number + 1}", {**about, **said, "annotations": {"coherence": score}}


@layout(
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
    replies: dict[str, tuple[str, str, dict[str, Any]]] = {}
    rows, true = [], {}
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
        about = {
            "dialogue": id,
            "context": turns,
            "response": text,
            "model": "random" if label == "1" else "ground-truth",
        }
        letters = re.sub(r"\W+", "", f"{label}{''.join(turns)}{text}")
        first, known, about = replies.setdefault(id, (where, letters, about))
        if known != letters:
            raise AnnotationError(f"{where}: another context or reply than at {first}, of the same id")
        rows.append((where, about, score))
        if label == "0":
            true[tuple(about["context"])] = about["response"]
    for where, about, score in rows:
        reference = true.get(tuple(about["context"]))
        yield where, {**about, "reference": reference, "rater": None, "annotations": {"relevance": score}}


@layout(lambda source: _is_conture(source.first.get("turns")))
def conture(source: Source) -> Iterator[Row]:
    """ConTurE (Ghazarian et al., Findings of ACL 2022): dialogues of a user and a chatbot, whose answers are rated.

    Ratings of whole dialogues are counted and left out.
    """
    for number, (where, dialogue) in enumerate(source.objects()):
        source.left_out[WHOLE_DIALOGUE] += bool(dialogue.get("dialog_ratings"))
        context: list[str] = []
        about = {"dialogue": dialogue.get("dialog_id", number), "model": dialogue.get("model")}
        for at, turn in enumerate(_listed(where, dialogue, "turns"), 1):
            place = f"{where}, turn {at}"
            said = _object(place, turn)
            user, answer = (text_of(place, said, of) if said.get(of) else "" for of in ("user", "chatbot"))
            context = [*context, _CONTURE_SPEAKER.sub("", user, count=1)]
            answer = _CONTURE_SPEAKER.sub("", answer, count=1)
            numbers = ("user", "chatbot", "id", "turn", "turn_id", "index")
            scores = {of: value for of, value in said.items() if normalise(of) not in numbers}
            yield place, {**about, "context": context, "response": answer, "annotations": scores}
            context = [*context, answer]


def _is_conture(turns: Any) -> bool:
    first = turns[0] if isinstance(turns, list) and turns else None
    return isinstance(first, dict) and {"user", "chatbot"} <= first.keys()


def _is_zhao(source: Source) -> bool:
    first = next(iter(source.first.values()), None)
    return isinstance(first, dict) and isinstance(first.get("responses"), dict) and "context" in first


@layout(_is_zhao)
def zhao(source: Source) -> Iterator[Row]:
    """The sets of Zhao et al. (ACL 2020): one JSON object of dialogues by their ids, each with context and reference as
    [speaker, text], and the `uttr` of systems with workers' `scores`, of which marks of outliers are none."""
    for name, dialogue in ((name, value) for _, row in source.objects() for name, value in row.items()):
        where = f"{source.path}, dialogue {name}"
        try:
            reference = dialogue["reference"][1] if dialogue.get("reference") else None
            about = {
                "dialogue": name,
                "context": [text for _, text in dialogue["context"]],
                "reference": reference,
            }
            for system, response in dialogue["responses"].items():
                text = text_of(f"{where}, response of {system}", response, "uttr")
                for worker, given in (response.get("scores") or {None: {}}).items():
                    scores = {of: score for of, score in given.items() if not of.endswith("_is_outlier")}
                    yield (
                        where,
                        {**about, "response": text, "model": system, "rater": worker, "annotations": scores},
                    )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise AnnotationError(f"{where}: expected context, reference and responses of systems") from None


@layout(lambda source: {"context", "positive_responses"} <= source.first.keys())
def dailydialog_plusplus(source: Source) -> Iterator[Row]:
    """DailyDialog++ (Sai et al., TACL 2020): contexts with lists of responses, whose names are the labels: 1 for one
    that a person wrote as relevant, 0 for one that was written or drawn as irrelevant. The kind is the system."""
    for number, (where, row) in enumerate(source.objects()):
        about = {"dialogue": row.get("id", number), "context": row.get("context")}
        for name, label in _RELEVANCE.items():
            for text in _listed(where, row, name) if name in row else []:
                said = {
                    "response": text_of(where, {name: text}, name),
                    "model": name.removesuffix("_responses"),
                }
                yield where, {**about, **said, "annotations": {"relevance": label}}


def _listed(where: str, row: Any, name: str) -> list[Any]:
    if not isinstance(row.get(name), list):
        raise AnnotationError(f"{where}: no list of {name}")
    return list(row[name])


def _object(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AnnotationError(f"{where}: expected an object, not {value!r:.60}")
    return value
