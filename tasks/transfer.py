"""Evaluators that come without a training: registered, or imported from a file that another home folder exported."""

from __future__ import annotations

import json
import re
import shutil
import stat
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from ssrem import trusted_sources
from ssrem.errors import EvaluatorError, SsremError, one_line
from ssrem.evaluators import MANIFEST, PACKAGED, evaluator_class, load_evaluator, packaged
from ssrem.files import check_regular, read_json
from ssrem.samples import Sample
from ssrem.settings import explained
from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Recipe, Stage, already_done, run_stage
from ssrem.tasks.versions import Version, known_version, promoted, stage_version, unregistered, versions
from ssrem.tasks.warehouse.files import model_damage, whole_file
from ssrem.tasks.warehouse.home import Warehouse, checked_name

_ENTRY = re.compile(r"([\w-][\w.-]*/)*[\w-][\w.-]*\.(json|safetensors|txt|model)", re.ASCII)
"""Paths in an exported file: inside its folder, of JSON, weights or a tokenizer."""


def register(
    name: str, home: str, settings: Mapping[str, Any] | None = None, *, resources: Resources = Resources()
) -> tuple[int, bool]:
    """Publish an evaluator that learns nothing, with these settings, or a packaged one that has no version here;
    returns the version and whether it is new.

    Raises EvaluatorError if the name or a setting is unknown, a package is missing, or it has to be trained.
    """
    warehouse = Warehouse.at(home)
    kind: Any = evaluator_class(name)
    learns = bool(kind.learns_from)
    if learns and (settings or name not in packaged()):
        raise EvaluatorError(f"{name} learns from conversations; run ssrem train {name}")
    with progress(f"loading {name}"):
        evaluator: Any = load_evaluator(name) if learns else kind(**(settings or {}))
        recipe = Recipe({"evaluator": name, "signature": evaluator.signature}, {})

    def registered_before(_: Recipe) -> tuple[int, bool] | None:
        newest = max((row["version"] for row in versions(warehouse, name)), default=0)
        whole = already_done(warehouse, "train", recipe) and not model_damage(warehouse.models, name, newest)
        return (newest, False) if newest and (learns or whole) else None

    def build(stage: Stage) -> Built[tuple[int, bool]]:
        folder = stage.scratch / "model"
        if learns:
            shutil.copytree(PACKAGED / name, folder)
            return stage_version(stage, evaluator, *read_card(folder))[1]
        row, built = stage_version(stage, evaluator, evaluator.settings)
        card = {column: row[column] for column in ("evaluator", "version", "signature", "config")}
        evaluator.save(folder, card=card)
        return built

    return run_stage(warehouse, "train", lambda: recipe, build, done=registered_before, resources=resources)


def registered(
    home: str,
    names: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    *,
    resources: Resources = Resources(),
) -> list[Version]:
    """(name, version) in use of each evaluator. Evaluators that need no training are registered first if `settings` has
    settings for them or they have no version here.

    settings: evaluator → what makes a version of it. EvaluatorError for one that has to be trained first.
    """
    warehouse = Warehouse.at(home)
    new = unregistered(warehouse, names)
    for name in names:
        if settings.get(name) or name in new:
            register(name, home, settings.get(name), resources=resources)
    return promoted(warehouse, names)


def export_evaluator(home: Warehouse, name: str, version: int | None, file: Path | None) -> Path:
    """Write a version of the evaluator into `file`; returns its path.

    version: None for the promoted one. file: None for NAME-VERSION.ssrem in the current folder. Raises EvaluatorError
    if there is no such version.
    """
    version = known_version(home, name, promoted(home, [name])[0][1] if version is None else version)
    target = file or Path(f"{name}-{version}.ssrem")
    with progress(f"writing {target}"):
        pack(home.models / name / str(version), target)
    return target


def import_evaluator(
    file: str, home: str, *, allowed: Sequence[str] = (), resources: Resources = Resources()
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
            try:
                with trusted_sources.restricted_to(folder, allowed):
                    evaluator = load_evaluator(folder)
                    # Some of its files are read only when it scores.
                    evaluator.components([Sample(("how are you",), "fine, and you", "very well")])
            except Exception as error:  # a foreign file can fail with any type of error
                why = error if isinstance(error, SsremError) else f"{one_line(error)}; export it again"
                raise EvaluatorError(f"{file} cannot be imported: {why}") from error
        name, old = evaluator.name, versions(warehouse, evaluator.name)
        if same := [row["version"] for row in old if row["signature"] == evaluator.signature]:
            return Built((name, int(same[-1]), False))
        row, built = stage_version(stage, evaluator, *read_card(folder))
        return Built((name, row["version"], True), built.outputs, built.folders)

    # Whether it is known shows when it is unpacked.
    recipe = Recipe({"import": Path(file).name}, {})
    return run_stage(warehouse, "train", lambda: recipe, build, done=lambda _: None, resources=resources)


def pack(folder: Path, file: Path) -> None:
    """Write the evaluator saved in `folder` into `file`, a zip of its files, completely or not at all.

    EvaluatorError if the folder holds none, or `file` cannot be written.
    """
    if not (folder / MANIFEST).is_file():
        raise EvaluatorError(f"{folder} holds no saved evaluator; it has no {MANIFEST}")
    try:
        # Uncompressed: weights would take seconds and save little. Without times: equal folders are equal files.
        with whole_file(file) as draft, zipfile.ZipFile(draft, "w") as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                with path.open("rb") as source, archive.open(entry, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
    except OSError as error:
        raise EvaluatorError(f"{file} cannot be written ({error.strerror}); give another path") from error


def unpack(file: Path, folder: Path) -> None:
    """Write the evaluator packed in `file` into `folder`; its contents are checked by `load_evaluator`.

    EvaluatorError unless `file` is an undamaged zip with a manifest, and each entry is a plain uncompressed file inside
    `folder`, named once: JSON, weights or a tokenizer. No more bytes are written than the file has.
    """
    try:
        check_regular(file)
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
            if odd := [entry.filename for entry in entries if not _belongs(entry)]:
                raise EvaluatorError(f"{file}: {odd[0]!r} is nothing that belongs to an evaluator")
            names, size = {entry.filename for entry in entries}, sum(entry.file_size for entry in entries)
            if len(names) < len(entries) or size > file.stat().st_size:
                raise EvaluatorError(
                    f"{file} names an entry twice or unpacks to more than its size; copy it again"
                )
            if MANIFEST not in names:
                raise EvaluatorError(f"{file} holds no evaluator; make one with ssrem evaluators export")
            archive.extractall(folder, sorted(names))
    except FileNotFoundError:
        raise EvaluatorError(f"{file} does not exist; give what ssrem evaluators export wrote") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise EvaluatorError(
            f"{file} is damaged or not what ssrem evaluators export wrote ({error}); copy it again"
        ) from error


def _belongs(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry is a plain file inside the folder, stored: a few compressed bytes could become terabytes."""
    plain = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
    return plain and entry.compress_type == zipfile.ZIP_STORED and bool(_ENTRY.fullmatch(entry.filename))


def _plain_object(value: object) -> object:
    """A JSON object, or the text of one; ValueError if it is long or has text that a terminal does not print."""
    try:
        content = json.loads(value) if isinstance(value, str) else value
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if len(text) > 100_000 or not text.isprintable() or re.search(r"(?<!\\)(\\\\)*\\[bfnrtu]", text):
        raise ValueError("expected an object of at most 100,000 printable characters")
    return content


def _corpus_name(name: str) -> str:
    return checked_name(name, "card.json: a corpus", "export the evaluator again", EvaluatorError)


_Number = Annotated[float, Field(strict=True, ge=0, lt=2**53)] | None
_Whole = Annotated[int, Field(strict=True, ge=0, lt=2**53)] | None  # exact as a float, too


class _Card(BaseModel):
    """What an evaluator from elsewhere says of its training, as columns of `evaluators`."""

    config: Annotated[dict[str, Any], BeforeValidator(_plain_object)] = {}
    corpora: Annotated[
        dict[Annotated[str, AfterValidator(_corpus_name)], str], BeforeValidator(_plain_object)
    ] = {}
    labels: str | None = Field(None, pattern=r"^[0-9a-f]{64}(\+[0-9a-f]{64})*$")
    train_responses: _Whole = None
    valid_responses: _Whole = None
    test_responses: _Whole = None
    test_sample: _Whole = None
    valid_loss: _Number = None
    best_epoch: _Whole = None
    epochs: _Whole = None
    seconds: _Number = None


def read_card(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the evaluator in `folder`, and the columns of `evaluators` about its training, by its card.json,
    if there is one. EvaluatorError for a value that a table cannot hold."""
    file = folder / "card.json"
    try:
        card = _Card.model_validate(read_json(file, ()) if file.exists() else {})
    except ValidationError as error:
        raise EvaluatorError(f"card.json: {explained(error, [])}; export the evaluator again") from None
    learned = card.model_dump(exclude={"config"}, exclude_none=True)
    return card.config, {**learned, "corpora": json.dumps(card.corpora, sort_keys=True)}
