"""Packs a saved evaluator into one file: a zip of its folder of JSON, safetensors and tokenizer files."""

from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from ssrem.errors import EvaluatorError
from ssrem.evaluators import MANIFEST
from ssrem.files import check_regular

SUFFIX = ".ssrem"
_KINDS = (".json", ".safetensors", ".txt", ".model")
_MOST_ENTRIES = 10_000
# Weights are not compressed: that costs seconds and saves little. A fixed time makes files of equal folders equal.
_TIME = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, file: Path) -> None:
    """Write the evaluator saved in `folder` into `file`, completely or not at all.

    EvaluatorError if the folder holds none, or `file` cannot be written.
    """
    if not (folder / MANIFEST).is_file():
        raise EvaluatorError(f"{folder} holds no saved evaluator; it has no {MANIFEST}")
    try:
        check_regular(file)
        part = file.with_name(f"{file.name}.part")
        try:
            with zipfile.ZipFile(part, "w") as archive:
                for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                    about = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _TIME)
                    with path.open("rb") as source, archive.open(about, "w") as target:
                        shutil.copyfileobj(source, target, 1 << 20)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise EvaluatorError(f"{file} cannot be written ({error.strerror}); give another path") from error


def unpack(file: Path, folder: Path) -> None:
    """Write the evaluator packed in `file` into `folder`; its contents are checked by `load_evaluator`.

    EvaluatorError unless `file` is an undamaged zip with a manifest, and each entry is a plain uncompressed file inside
    `folder`, named once: JSON, safetensors or a tokenizer's text. No more bytes are written than the file has.
    """
    if file.exists() and not file.is_file():  # a pipe would be waited for, a device read without end
        raise EvaluatorError(f"{file} is no file; give what ssrem evaluators export wrote")
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
            for entry in entries:
                _check(file, entry)
            names = {entry.filename for entry in entries}
            sizes = sum(entry.file_size for entry in entries)
            if len(names) < len(entries) or len(names) > _MOST_ENTRIES or sizes > file.stat().st_size:
                raise EvaluatorError(
                    f"{file} names an entry twice, has too many, or unpacks to more than its size; it was not made by "
                    "ssrem evaluators export"
                )
            if MANIFEST not in names:
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
    """EvaluatorError unless the entry may be part of a packed evaluator, see `unpack`."""
    name, kind = entry.filename, stat.S_IFMT(entry.external_attr >> 16)
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name
    # A few compressed bytes could become terabytes.
    compressed = entry.compress_type != zipfile.ZIP_STORED
    odd = path.suffix not in _KINDS or not name.isprintable() or kind not in (0, stat.S_IFREG)
    if outside or compressed or odd:
        raise EvaluatorError(
            f"{file}: {name!r} is nothing that belongs to an evaluator; it was not made by ssrem evaluators export"
        )
