"""Moves an evaluator between home folders: a version is exported into one file, and imported as a version elsewhere."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

from ssrem import trusted_sources
from ssrem.errors import EvaluatorError, SsremError, one_line
from ssrem.evaluators import MANIFEST, load_evaluator, packaged
from ssrem.files import check_regular
from ssrem.samples import Sample
from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Recipe, Stage, run_stage
from ssrem.tasks.versions import known_version, promoted, read_card, stage_version, versions
from ssrem.tasks.warehouse.files import model_damage, whole_file
from ssrem.tasks.warehouse.home import Warehouse


def export_evaluator(home: Warehouse, name: str, version: int | None, file: Path | None) -> Path:
    """Write a version of the evaluator into `file`; returns its path.

    version: None for the promoted one. file: None for NAME-VERSION.ssrem in the current folder. Raises EvaluatorError
    if there is no such version, or its model is damaged.
    """
    if name in packaged() and not versions(home, name):
        raise EvaluatorError(
            f"{name} comes with ssrem, and has no version of its own in {home.root} to export"
        )
    version = known_version(home, name, promoted(home, [name])[0][1] if version is None else version)
    if damage := model_damage(home.models, name, version, deep=True):
        raise EvaluatorError(
            f"{name} version {version} cannot be exported: {damage}; restore it from a backup copy"
        )
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
        same = [row["version"] for row in old if row["signature"] == evaluator.signature]
        if same and not model_damage(warehouse.models, name, same[-1]):
            return Built((name, int(same[-1]), False))
        row, built = stage_version(stage, evaluator, *read_card(folder))
        return Built((name, row["version"], True), built.outputs, built.folders)

    # Whether the evaluator is known is seen only after unpacking.
    recipe, title = Recipe({"import": Path(file).name}, {}), f"import {Path(file).name}"
    return run_stage(
        warehouse, "train", lambda: recipe, build, done=lambda _: None, resources=resources, title=title
    )


def pack(folder: Path, file: Path) -> None:
    """Write the evaluator saved in `folder` into `file`, a tar of its files, completely or not at all.

    EvaluatorError if the folder holds none, or `file` cannot be written.
    """
    if not (folder / MANIFEST).is_file():
        raise EvaluatorError(f"{folder} holds no saved evaluator; it has no {MANIFEST}")

    def nameless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        """The entry without owner and time, so that equal folders give equal files, whoever exports them."""
        return entry.replace(mtime=0, mode=0o644, uid=0, gid=0, uname="", gname="", deep=False)

    try:
        with whole_file(file) as draft, tarfile.open(draft, "w") as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                archive.add(path, path.relative_to(folder), filter=nameless)
    except OSError as error:
        raise EvaluatorError(f"{file} cannot be written ({error.strerror}); give another path") from error


def unpack(file: Path, folder: Path) -> None:
    """Write the evaluator packed in `file` into `folder`; `load_evaluator` compares its files with their digests.

    EvaluatorError unless `file` is an uncompressed tar of plain files that lie inside `folder`, with a manifest.
    """
    try:
        check_regular(file)
        with tarfile.open(file, "r:") as archive:
            entries = archive.getmembers()
            if (
                not all(entry.isreg() for entry in entries)
                or sum(e.size for e in entries) > file.stat().st_size
            ):
                raise tarfile.TarError("it holds more than plain files")
            if MANIFEST not in {entry.name for entry in entries}:
                raise EvaluatorError(f"{file} holds no evaluator; make one with ssrem evaluators export")
            archive.extractall(folder, filter="data")  # refuses names that lead out of the folder
    except FileNotFoundError:
        raise EvaluatorError(f"{file} does not exist; give what ssrem evaluators export wrote") from None
    except (tarfile.TarError, OSError, ValueError) as error:
        why = one_line(error)
        raise EvaluatorError(
            f"{file} is not what this version of ssrem evaluators export wrote ({why}); export or copy it again"
        ) from error
