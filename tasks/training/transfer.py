"""Export a version of an evaluator as one file, and import it into another home folder."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ssrem import trusted_sources
from ssrem.errors import EvaluatorError, SsremError, one_line, short_repr
from ssrem.evaluators import PACKAGED, evaluator_class, load_evaluator
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.core.archive import SUFFIX, pack, unpack
from ssrem.files import read_json
from ssrem.samples import Sample
from ssrem.tasks.ingest.dataset_names import checked_name
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.training.train import register
from ssrem.tasks.training.versions import known_version, promoted, stage_version, unregistered, versions
from ssrem.tasks.warehouse.home import Warehouse

_LEARNED = (
    *("corpora", "labels", "train_responses", "valid_responses", "test_responses", "test_sample"),
    *("valid_loss", "best_epoch", "epochs", "seconds"),
)
"""Columns of `evaluators` that are taken from the card of an imported evaluator."""

_LARGEST = 2**53
"""Integers below it are exact as floats; a larger number in a card is refused."""

_LONGEST = 100_000
"""Characters of the settings or corpora of a card."""


def export_evaluator(home: Warehouse, name: str, version: int | None, file: Path | None) -> Path:
    """Write a version of the evaluator into `file`; returns its path.

    version: None for the promoted one. file: None for NAME-VERSION.ssrem in the current folder. Raises EvaluatorError
    if there is no such version.
    """
    version = known_version(home, name, promoted(home, [name])[0][1] if version is None else version)
    target = file or Path(f"{name}-{version}{SUFFIX}")
    with progress(f"writing {target}"):
        pack(home.models / name / str(version), target)
    return target


@step("import evaluator")
def import_evaluator(
    file: str, home: str, *, allowed: Sequence[str] = (), resources: Resources | None = None
) -> tuple[str, int, bool]:
    """Publish the evaluator in `file` as the newest version of its name; returns name, version and whether it is new.

    It is first loaded, which checks hashes, format, signature and encoder, and scores a sample. It may read only its
    own files, installed packages, and the encoders and models in `allowed`, names or paths. Raises EvaluatorError if
    any of this fails.
    """
    warehouse = Warehouse.at(home)

    def build(stage: Stage) -> Built[tuple[str, int, bool]]:
        folder = stage.scratch / "model"
        with progress(f"checking {file}"):
            unpack(Path(file), folder)
            evaluator = _checked(file, folder, allowed)
        name, signature = evaluator.name, evaluator.signature
        same = [row["version"] for row in versions(warehouse, name) if row["signature"] == signature]
        if same:
            return Built((name, int(same[-1]), False))
        card: dict[str, Any] = read_json(folder / "card.json", ()) if (folder / "card.json").exists() else {}
        row, built = stage_version(stage, evaluator, _settings(card), _learned(card))
        return Built((name, row["version"], True), built.outputs, built.folders)

    return run_stage(
        warehouse,
        "train",
        lambda: Recipe({"import": Path(file).name}, {}),
        build,
        done=lambda _: None,  # only the unpacked evaluator shows whether it is known
        resources=resources,
    )


@step("register packaged evaluator")
def register_packaged(name: str, home: str, *, resources: Resources | None = None) -> tuple[int, bool]:
    """Publish the packaged evaluator `name` as a version if there is no version of that name; returns the version and
    whether it is new. EvaluatorError if a package that it needs is missing."""
    warehouse = Warehouse.at(home)
    with progress(f"loading {name}"):
        evaluator = load_evaluator(name)

    def build(stage: Stage) -> Built[tuple[int, bool]]:
        if known := versions(warehouse, name):
            return Built((int(known[-1]["version"]), False))
        shutil.copytree(PACKAGED / name, stage.scratch / "model")
        card = read_json(PACKAGED / name / "card.json", ())
        _, built = stage_version(stage, evaluator, _settings(card), _learned(card))
        return built

    recipe = Recipe({"evaluator": name, "signature": evaluator.signature}, {})
    return run_stage(warehouse, "train", lambda: recipe, build, done=lambda _: None, resources=resources)


def registered(
    home: str,
    names: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    *,
    resources: Resources | None = None,
) -> list[tuple[str, int]]:
    """(name, version) in use of each evaluator. Evaluators that need no training are registered first if `settings` has
    settings for them or they have no version here.

    settings: evaluator → what makes a version of it. EvaluatorError for one that has to be trained first.
    """
    warehouse = Warehouse.at(home)
    for name in names:
        if settings.get(name):
            register(name, home, settings=settings[name], resources=resources)
    for name in unregistered(warehouse, names):
        publish = register_packaged if evaluator_class(name).learns_from else register
        publish(name, home, resources=resources)
    return promoted(warehouse, names)


def _checked(file: str, folder: Path, allowed: Sequence[str]) -> Evaluator:
    """The evaluator in `folder`, checked by scoring a sample: some of its files are read only then."""
    try:
        with trusted_sources.restricted_to(folder, allowed):
            evaluator = load_evaluator(folder)
            evaluator.components([Sample(("how are you",), "fine, and you", "very well")])
    except SsremError as error:
        raise EvaluatorError(f"{file} cannot be imported: {error}") from error
    except Exception as error:  # a foreign file can fail with any type of error
        raise EvaluatorError(
            f"{file} holds no evaluator that can be used ({one_line(error)}); export it again"
        ) from error
    return evaluator


def _settings(card: dict[str, Any]) -> dict[str, Any]:
    try:
        return _json_object(card.get("config", {}))
    except ValueError as error:
        raise EvaluatorError(
            f"card.json: config holds no settings ({error}); export the evaluator again"
        ) from None


def _json_object(value: object) -> dict[str, Any]:
    """A JSON object, or the text of one, with only short and printable texts in it; ValueError otherwise."""
    try:
        content: Any = json.loads(value) if isinstance(value, str) else value
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(one_line(error)) from None
    short = isinstance(content, dict) and len(text) <= _LONGEST
    if not short or not all(text.isprintable() for text in _texts(content)):
        raise ValueError(f"expected an object of at most {_LONGEST:,} printable characters")
    return dict(content)


def _texts(value: object) -> Iterator[str]:
    """All text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(one)


def _learned(card: dict[str, Any]) -> dict[str, Any]:
    learned = {column: card[column] for column in _LEARNED if card.get(column) is not None}
    try:
        corpora = _json_object(learned.get("corpora", {}))
    except ValueError as error:
        raise EvaluatorError(
            f"card.json: corpora are no names ({error}); export the evaluator again"
        ) from None
    for name, digest in corpora.items():
        checked_name(name, "card.json: a corpus", "export the evaluator again", EvaluatorError)
        if not isinstance(digest, str):
            raise EvaluatorError(f"card.json: corpus {name} has no sha256; export the evaluator again")
    if "corpora" in learned:
        learned["corpora"] = json.dumps(corpora, sort_keys=True)
    for column, value in learned.items():
        whole = column not in ("valid_loss", "seconds")
        if column not in ("corpora", "labels") and not _is_number(value, whole):
            raise EvaluatorError(
                f"card.json: {column} is {short_repr(value)}, not a number from 0; export the evaluator again"
            )
    if not re.fullmatch(r"[0-9a-f]{64}(\+[0-9a-f]{64})*", str(learned.get("labels", "0" * 64))):
        raise EvaluatorError("card.json: labels is not the sha256 of a file; export the evaluator again")
    return learned


def _is_number(value: object, whole: bool) -> bool:
    """Whether it is a number of at least 0 that a table can hold."""
    kind = int if whole else (int, float)
    return isinstance(value, kind) and not isinstance(value, bool) and 0 <= value < _LARGEST
