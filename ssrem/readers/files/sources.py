"""Turns what the user names as a dump, such as a pattern, an archive or a URL, into local files and folders."""

from __future__ import annotations

import errno
import glob
import re
import shutil
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import IO, cast

from ssrem.errors import DumpError, one_line
from ssrem.files import folder_of
from ssrem.readers.files.streams import DumpFile, in_order

STDIN = "-"
_URL = re.compile(r"(\w[\w+.-]*)://.")
_PIECE = 1 << 20
_PACKAGES = {"http": "aiohttp", "https": "aiohttp", "hf": "huggingface_hub", "s3": "s3fs", "gs": "gcsfs"}
MOST_FILES = 100_000
"""Most entries that an archive may have."""
SMALL, MOST_TIMES = 256 << 20, 200
"""An archive that unpacks to more than SMALL bytes, and to more than MOST_TIMES its size, is treated as a decompression
bomb. Text packs to about a tenth; deflate cannot pack to less than a thousandth."""
_BY_HAND = "unpack it, and give the folder"
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, ValueError)


class Held:
    """A temporary folder with what was unpacked or fetched from a source; it is deleted with this object."""

    def __init__(self, source: str) -> None:
        self.source, self.folder = source, folder_of(self)

    def target(self, name: str) -> Path:
        """The path in the folder for a file whose name comes from outside; DumpError if the name leads out of it."""
        path = PurePosixPath(name.replace("\\", "/"))  # as archives made on Windows may have them
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise DumpError(
                f"{self.source}: {name!r} in the archive leads out of it; is it from a source that you trust?"
            )
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def as_given(error: DumpError, held: Iterable[object]) -> DumpError:
    """The error, with temporary folders in its message replaced by the sources as the user named them."""
    message = str(error)
    for one in held:
        if isinstance(one, Held):
            message = message.replace(str(one.folder), one.source)
    return DumpError(message)


def base_name(source: str) -> str:
    """The last part of a path or URL; for a pattern, the name of the folder above its first wildcard; for `.` or `..`,
    the name of that folder."""
    if _URL.match(source):
        return PurePosixPath(re.split(r"[?#]", source.partition("://")[2])[0]).name
    path = PurePosixPath(source)
    if _is_pattern(source):
        fixed = next(number for number, part in enumerate(path.parts) if glob.has_magic(part))
        path = PurePosixPath(Path(*path.parts[:fixed]).resolve())
    return path.name if path.name not in ("", "..") else Path(source).resolve().name


def common_name(sources: Iterable[str]) -> str:
    """The name of the deepest folder in which all sources lie."""
    return common_folder([Path(source).resolve() for source in sources]).name


def absolute(source: str) -> str:
    """The source in a form valid in any working directory: absolute paths and patterns; "standard input" for `-`."""
    if source == STDIN:
        return "standard input"
    if _is_pattern(source) and not _URL.match(source):
        return str(Path(source).absolute())
    return str(Path(source).resolve()) if Path(source).exists() else source


def common_folder(paths: list[Path]) -> Path:
    """The deepest folder in which all paths lie."""
    first, *others = (path.parent for path in paths)
    return next(
        folder for folder in (first, *first.parents) if all(other.is_relative_to(folder) for other in others)
    )


def located(source: str) -> tuple[list[Path], Held | None]:
    """The files or folders that a source names, and the temporary folder that holds them if they were fetched.

    DumpError if the source cannot be read, or the disk is too small for it.
    """
    if source == STDIN or _URL.match(source):
        held = Held(source)
        try:
            return [_fetched(source, held)], held
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise DumpError(
                    f"{source}: {held.folder.parents[1]} is too small for it; set TMPDIR to a folder on a larger disk"
                ) from error
            raise
    if not _is_pattern(source):
        return [Path(source)], None
    names = glob.glob(source, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
    paths = in_order(path for path in map(Path, names) if not path.is_dir())
    if not paths:
        raise DumpError(f"{source}: there is no such file, and none that it matches as a pattern")
    return paths, None


def _is_pattern(source: str) -> bool:
    return glob.has_magic(source) and not Path(source).exists()


def _fetched(source: str, held: Held) -> Path:
    """Write what is piped in, or the file at a URL, into the temporary folder, and return its path."""
    if source == STDIN:
        if sys.stdin.isatty():
            raise DumpError(
                "- reads what is piped in, and nothing is; for example: zcat dump.jsonl.gz | ssrem ingest -"
            )
        return _copied(sys.stdin.buffer, held.target("stdin"))
    scheme = source.partition("://")[0].lower()
    if scheme in ("file", "local", "zip", "tar") or "::" in source:
        raise DumpError(
            f"{source}: is a file of this machine, or in an archive; give the path of the file or archive"
        )
    try:
        import fsspec  # type: ignore[import-untyped]

        with fsspec.open(source, "rb") as stream:
            return _copied(stream, held.target(base_name(source) or "dump"))
    except ImportError as error:
        raise DumpError(
            f"{source}: addresses with {scheme}:// need a package; pip install {_PACKAGES.get(scheme, 'fsspec')}, or "
            "download the dump and give the file"
        ) from error
    except Exception as error:  # every file system has errors of its own
        if isinstance(error, DumpError) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
            raise
        raise DumpError(
            f"{source}: cannot be fetched ({one_line(error)}); give the address of one file, look at the network, or "
            "download the dump and give its path"
        ) from error


def _copied(stream: IO[bytes], target: Path) -> Path:
    with target.open("wb") as file:
        shutil.copyfileobj(stream, file, _PIECE)
    return target


def is_archive(file: DumpFile) -> bool:
    """Whether a file is a zip or tar archive, by its content."""
    start = file.head
    return start.startswith((b"PK\x03\x04", b"PK\x05\x06")) or start[257:262] == b"ustar"


def unpacked(path: Path) -> tuple[Path, Held]:
    """Unpack an archive; return its single file or the deepest folder with all files, and the temporary folder.

    Nothing is written outside the temporary folder. DumpError for links and devices, names that lead out of the folder
    or occur twice, more than MOST_FILES entries, a decompression bomb (see SMALL), and archives that are damaged,
    encrypted, without a file, or with another archive as their only file.
    """
    held = Held(str(path))
    most, size = max(SMALL, MOST_TIMES * path.stat().st_size), 0
    try:
        for number, (name, content) in enumerate(_entries(path), 1):
            if number > MOST_FILES:
                raise DumpError(f"{path}: the archive has more than {MOST_FILES:,} files; {_BY_HAND}")
            target = held.target(name)
            if target.exists():
                raise DumpError(f"{path}: {name!r} is twice in the archive; {_BY_HAND}")
            with target.open("wb") as file:
                while piece := content.read(_PIECE):
                    size += len(piece)
                    if size > most:
                        raise DumpError(
                            f"{path}: the archive unpacks to more than {most >> 20:,} MB, which looks like a bomb; if "
                            f"you trust it, {_BY_HAND}"
                        )
                    file.write(piece)
    except _DAMAGED as error:
        raise DumpError(
            f"{path}: the archive is damaged or encrypted ({error}); fetch it again, or {_BY_HAND}"
        ) from error
    folder = held.folder
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and not _is_side_file(file, folder)]
    if not files:
        raise DumpError(f"{path}: the archive holds no file; give one with conversations in it")
    if len(files) == 1 and is_archive(DumpFile(files[0])):
        raise DumpError(f"{path}: holds another archive, {files[0].name}; unpack it, and give that one")
    return files[0] if len(files) == 1 else common_folder(files), held


def _entries(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and content of each file of the archive."""
    file = DumpFile(path)
    if file.head.startswith(b"PK"):
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
    pieces = file.chunks(_PIECE)
    decompressed = SimpleNamespace(read=lambda _: next(pieces, b""))
    with tarfile.open(fileobj=cast("IO[bytes]", decompressed), mode="r|") as tar:
        for member in tar:
            extracted = tar.extractfile(member) if member.isfile() else None
            if extracted is not None:
                yield member.name, extracted
            elif not member.isdir():
                raise _link(path, member.name)


def _link(path: Path, name: str) -> DumpError:
    return DumpError(f"{path}: {name!r} in the archive is a link or a device; {_BY_HAND}")


def _is_side_file(path: Path, folder: Path) -> bool:
    """Whether it is a file that systems add to archives: a hidden file, or a resource fork of macOS."""
    return any(part.startswith(".") or part == "__MACOSX" for part in path.relative_to(folder).parts)
