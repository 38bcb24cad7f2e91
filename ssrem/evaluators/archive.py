"""A saved evaluator as one file: a zip of its folder, which holds JSON, safetensors and a tokenizer's text files."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path, PurePosixPath

from ssrem.errors import EvaluatorError
from ssrem.evaluators.metric import MANIFEST

SUFFIX = ".ssrem"
_KINDS = (".json", ".safetensors", ".txt", ".model")
# Deflating weights costs seconds and saves little; a fixed time makes equal folders equal files.
_TIME = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, file: Path) -> None:
    """Write the evaluator saved in `folder` into `file`, whole or not at all.

    EvaluatorError where the folder holds none, or `file` cannot be written.
    """
    if not (folder / MANIFEST).is_file():
        raise EvaluatorError(f"{folder} holds no saved evaluator; it has no {MANIFEST}")
    part = file.with_name(f"{file.name}.part")
    try:
        with zipfile.ZipFile(part, "w") as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                about = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _TIME)
                with path.open("rb") as source, archive.open(about, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        part.replace(file)
    except OSError as error:
        raise EvaluatorError(f"{file} cannot be written ({error.strerror}); give another path") from error
    finally:
        part.unlink(missing_ok=True)


def unpack(file: Path, folder: Path) -> None:
    """Write the evaluator packed in `file` into `folder`, which `load_evaluator` then checks.

    EvaluatorError for what is no such file: no zip, damaged, without a manifest, or with an entry that is neither
    JSON, safetensors nor a tokenizer's text, or that would land outside `folder`.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            for entry in entries:
                _check(file, entry.filename)
            if MANIFEST not in {entry.filename for entry in entries}:
                raise EvaluatorError(f"{file} holds no evaluator; make one with ssrem export")
            for entry in entries:
                target = folder / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
    except FileNotFoundError:
        raise EvaluatorError(f"{file} does not exist; give what ssrem export wrote") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise EvaluatorError(
            f"{file} is damaged or not what ssrem export wrote ({error}); copy it again"
        ) from error


def _check(file: Path, name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or path.suffix not in _KINDS:
        raise EvaluatorError(
            f"{file}: {name!r} is nothing that belongs to an evaluator; it was not made by ssrem export"
        )
