"""A saved evaluator as one file: a zip of its folder, which holds JSON, safetensors and a tokenizer's text files."""

from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from ssrem.errors import EvaluatorError
from ssrem.evaluators import MANIFEST

SUFFIX = ".ssrem"
_KINDS = (".json", ".safetensors", ".txt", ".model")
_MOST_ENTRIES = 10_000
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
    JSON, safetensors nor a tokenizer's text, that would land outside `folder`, that is there twice, is a link, or
    is more than the bytes that it takes in the file. What is written is never more than the file.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            for entry in entries:
                _check(file, entry)
            names = {entry.filename for entry in entries}
            sizes = sum(entry.file_size for entry in entries)
            if len(names) < len(entries) or len(names) > _MOST_ENTRIES or sizes > file.stat().st_size:
                raise EvaluatorError(
                    f"{file} holds more than itself; it was not made by ssrem evaluators export"
                )
            if MANIFEST not in {entry.filename for entry in entries}:
                raise EvaluatorError(f"{file} holds no evaluator; make one with ssrem evaluators export")
            for entry in entries:
                target = folder / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
    except FileNotFoundError:
        raise EvaluatorError(f"{file} does not exist; give what ssrem evaluators export wrote") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise EvaluatorError(
            f"{file} is damaged or not what ssrem evaluators export wrote ({error}); copy it again"
        ) from error


def _check(file: Path, entry: zipfile.ZipInfo) -> None:
    name, kind = entry.filename, stat.S_IFMT(entry.external_attr >> 16)
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name
    packed = (
        entry.compress_type != zipfile.ZIP_STORED
    )  # `pack` never does: a few bytes could become terabytes
    if (
        outside
        or packed
        or kind not in (0, stat.S_IFREG)
        or path.suffix not in _KINDS
        or not name.isprintable()
    ):
        raise EvaluatorError(
            f"{file}: {name!r} is nothing that belongs to an evaluator; it was not made by ssrem evaluators export"
        )
