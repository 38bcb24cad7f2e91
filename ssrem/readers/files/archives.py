"""Dumps in archives, known by their content: .zip and .tar, plain or compressed, unpack to a temporary folder."""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from ssrem.errors import DumpError
from ssrem.files import folder_of
from ssrem.readers.files.streams import chunks, head

_PIECE = 1 << 20
MOST_FILES = 100_000
"""Most entries of an archive."""
SMALL, MOST_TIMES = 256 << 20, 200
"""An archive that unpacks to more than SMALL bytes, and to more than MOST_TIMES its size, is taken for a bomb. Text
packs to about a tenth; deflate cannot pack to less than a thousandth."""
_BY_HAND = "unpack it, and give the folder"
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, ValueError)


def is_archive(path: Path) -> bool:
    """Whether a file is a zip or tar archive, by its content."""
    start = head(path, 512)
    return start.startswith((b"PK\x03\x04", b"PK\x05\x06")) or start[257:262] == b"ustar"


class Unpacked:
    """The files of the archive at `path` in the temporary folder `folder`, which is deleted with this object.

    Nothing is written outside that folder. DumpError for links and devices, names that lead out of the folder or occur
    twice, more than MOST_FILES entries, a bomb (see SMALL), and archives that are damaged or encrypted.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, folder_of(self)
        most, size = max(SMALL, MOST_TIMES * path.stat().st_size), 0
        try:
            for number, (name, content) in enumerate(_entries(path), 1):
                if number > MOST_FILES:
                    raise DumpError(f"{path}: the archive has more than {MOST_FILES:,} files; {_BY_HAND}")
                target = self.folder / inside(str(path), name)
                if target.exists():
                    raise DumpError(f"{path}: {name!r} is twice in the archive; {_BY_HAND}")
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    while piece := content.read(_PIECE):
                        size += len(piece)
                        if size > most:
                            raise DumpError(
                                f"{path}: the archive unpacks to more than {most >> 20:,} MB, which looks like a bomb; "
                                f"if you trust it, {_BY_HAND}"
                            )
                        file.write(piece)
        except _DAMAGED as error:
            raise DumpError(
                f"{path}: the archive is damaged or encrypted ({error}); fetch it again, or {_BY_HAND}"
            ) from error


def as_given(error: DumpError, held: Iterable[object]) -> DumpError:
    """The error with the paths of archives, as the user named them, instead of the folders they were unpacked to.

    held: objects of which some are Unpacked.
    """
    message = str(error)
    for item in held:
        if isinstance(item, Unpacked):
            message = message.replace(str(item.folder), str(item.path))
    return DumpError(message)


class _Decompressed:
    """The content of a plain or compressed file, as tarfile reads it."""

    def __init__(self, path: Path) -> None:
        self._pieces = chunks(path, _PIECE)

    def read(self, _: int) -> bytes:
        return next(self._pieces, b"")


def _entries(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each file of the archive."""
    if head(path, 2) == b"PK":
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise _link(path, entry.filename)
                if entry.flag_bits & 1:
                    raise zipfile.BadZipFile("it needs a password")
                if not entry.is_dir():
                    with archive.open(entry) as content:
                        yield entry.filename, content
        return
    with tarfile.open(fileobj=cast("IO[bytes]", _Decompressed(path)), mode="r|") as tar:
        for member in tar:
            extracted = tar.extractfile(member) if member.isfile() else None
            if extracted is not None:
                yield member.name, extracted
            elif not member.isdir():
                raise _link(path, member.name)


def _link(path: Path, name: str) -> DumpError:
    return DumpError(f"{path}: {name!r} in the archive is a link or a device; {_BY_HAND}")


def inside(source: str, name: str) -> PurePosixPath:
    """A name that comes from outside, such as of an archive's entry, as a path below the folder that it is written to;
    DumpError, which names the source, if it leads elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        raise DumpError(
            f"{source}: {name!r} in the archive leads out of it; is it from a source that you trust?"
        )
    return path


def dump_in(folder: Path, archive: Path) -> Path:
    """What to read of an unpacked archive: its single file, or the deepest folder that holds all files.

    DumpError if it holds no file, or an archive.
    """
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and not _is_side_file(file, folder)]
    if not files:
        raise DumpError(f"{archive}: the archive holds no file; give one with conversations in it")
    if len(files) == 1:
        if is_archive(files[0]):
            raise DumpError(
                f"{archive}: holds another archive, {files[0].name}; unpack it, and give that one"
            )
        return files[0]
    while len(inner := [path for path in folder.iterdir() if not _is_side_file(path, folder)]) == 1:
        folder = inner[0]
    return folder


def _is_side_file(path: Path, folder: Path) -> bool:
    """What systems add to archives: hidden files, and macOS's resource forks."""
    return any(part.startswith(".") or part == "__MACOSX" for part in path.relative_to(folder).parts)
