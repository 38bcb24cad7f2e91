"""Helpers for files: paths, text, hashes, safetensors, JSON, folders of packages, and temporary folders."""

from __future__ import annotations

import codecs
import errno
import fcntl
import hashlib
import json
import os
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any

from ssrem.errors import EvaluatorError, SsremError

if TYPE_CHECKING:
    from numpy.typing import NDArray


UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""The two byte order marks with which a UTF-16 file may begin."""
LARGEST_TEXT = 1 << 30
"""Size in bytes of the largest text file that is read into memory as a whole."""


def expanded(path: str | Path, error: type[SsremError] = EvaluatorError) -> Path:
    """The path with `~` or `~USER` replaced by that user's home folder; raises `error` if the folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        user = Path(path).parts[0]
        raise error(f"{path}: the home folder {user} is not known; write the path without {user}") from None


def resolved(path: str | Path, error: type[SsremError] = EvaluatorError) -> Path:
    """The path as `expanded`, made absolute and with symbolic links resolved; links in a circle stay unresolved."""
    return Path(os.path.realpath(expanded(path, error)))


def sha256(path: Path) -> str:
    """Hex digest of the file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_regular(path: Path) -> None:
    """Raise OSError for a folder, pipe or device: a pipe would block, and a device be read forever or replaced."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


def read_text(path: Path) -> str:
    """The content of a text file, without a byte order mark.

    Raises OSError if it is no regular file or larger than LARGEST_TEXT, UnicodeDecodeError if it is neither UTF-8 nor
    UTF-16 with a byte order mark.
    """
    check_regular(path)
    if path.stat().st_size > LARGEST_TEXT:
        raise OSError(errno.EFBIG, f"is larger than {LARGEST_TEXT >> 20:,} MB", str(path))
    with path.open("rb") as file:
        is_utf16 = file.read(2) in UTF16_BOMS
    return path.read_text(encoding="utf-16" if is_utf16 else "utf-8-sig")


def package_folder(package: str) -> Path | None:
    """The folder of a package, which is found without importing it; None if it is not installed."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0]) if folders else None


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> str:
    """Write `tensors` as a safetensors file; returns the sha256 of the file."""
    import numpy as np
    from safetensors.numpy import save_file

    # safetensors writes the buffer as it is in memory, so views and transposed arrays must be copied first.
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path)
    return sha256(path)


def read_tensors(path: Path, expected_sha256: str, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The tensors in `path`; EvaluatorError if the file is missing, changed or lacks one of `names`."""
    if not path.is_file():
        raise EvaluatorError(f"{path}: no such file; the model folder is incomplete, train or copy it again")
    if sha256(path) != expected_sha256:
        raise EvaluatorError(
            f"{path}: its sha256 is not the one in the JSON beside it; copy or train it again"
        )
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors: dict[str, NDArray[Any]] = load_file(path)
    except SafetensorError as error:
        raise EvaluatorError(f"{path}: not a safetensors file ({error}); train or copy it again") from error
    missing = [name for name in names if name not in tensors]
    if missing:
        raise EvaluatorError(f"{path}: lacks {', '.join(missing)}; it was not written by this ssrem")
    return tensors


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` as JSON; NaN and infinity are refused."""
    path.write_text(
        json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
    )


def read_json(path: Path, keys: Iterable[str]) -> dict[str, Any]:
    """The JSON object in `path`; EvaluatorError if it is missing, damaged or lacks one of `keys`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EvaluatorError(
            f"{path}: no such file; {path.parent} is not a folder that ssrem saved"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise EvaluatorError(f"{path}: cannot be read as JSON ({error}); train or copy it again") from error
    if not isinstance(content, dict):
        raise EvaluatorError(f"{path}: is no JSON object; it was not written by this ssrem")
    missing = [key for key in keys if key not in content]
    if missing:
        raise EvaluatorError(f"{path}: lacks {', '.join(missing)}; it was not written by this ssrem")
    return content


_TEMPORARY = "ssrem-"


@contextmanager
def temporary_folder(within: Path | None = None) -> Iterator[Path]:
    """Create a folder under `within` or the temporary directory, and delete it when the block ends.

    Folders that killed processes left there are deleted first.
    """
    delete_abandoned(within)
    with (
        TemporaryDirectory(prefix=_TEMPORARY, dir=within) as folder,
        (Path(folder) / ".lock").open("wb") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel releases it when this process ends
        yield Path(folder)


def delete_abandoned(within: Path | None = None) -> None:
    """Delete the temporary folders that killed processes left under `within` or the temporary directory."""
    for lock in (within or Path(gettempdir())).glob(f"{_TEMPORARY}*/.lock"):
        if lock.is_file():  # opening a pipe, which anyone may put there, would block
            with suppress(OSError), lock.open("rb") as handle:  # in use, another user's, or gone
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent)


def folder_of(owner: object) -> Path:
    """An empty temporary folder that exists as long as `owner`."""
    stack = ExitStack()
    weakref.finalize(owner, stack.close)
    folder = stack.enter_context(temporary_folder()) / "files"
    folder.mkdir()
    return folder
