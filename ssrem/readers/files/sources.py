"""Resolves the sources of a dump (files, folders, patterns, `-`, URLs) to files and folders of this machine."""

from __future__ import annotations

import errno
import glob
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ssrem.errors import DumpError, one_line
from ssrem.files import folder_of
from ssrem.readers.files.archives import inside

STDIN = "-"
_URL = re.compile(r"(\w[\w+.-]*)://.")
_PIECE = 1 << 20
_PACKAGES = {"http": "aiohttp", "https": "aiohttp", "hf": "huggingface_hub", "s3": "s3fs", "gs": "gcsfs"}


def is_remote(source: str) -> bool:
    """Whether a source is standard input or a URL, which is read only once."""
    return source == STDIN or _URL.match(source) is not None


def base_name(source: str) -> str:
    """The last part of a source's name, or of its folder's name for a pattern or if there is none."""
    if _URL.match(source):
        path = PurePosixPath(source.partition("://")[2].partition("?")[0].partition("#")[0])
        return path.name
    path = PurePosixPath(source)
    if _is_pattern(source):
        path = PurePosixPath(Path(*path.parts[: _fixed(path)]).resolve())
    return path.name if path.name not in ("", "..") else Path(source).resolve().name


def common_name(sources: Iterable[str]) -> str:
    """The name of the folder in which several sources lie."""
    return common_folder([Path(source).resolve() for source in sources]).name


def absolute(source: str) -> str:
    """A source that is valid in any working directory: paths and patterns become absolute."""
    if is_remote(source) or not (_is_pattern(source) or Path(source).exists()):
        return "standard input" if source == STDIN else source
    return str(Path(source).absolute() if _is_pattern(source) else Path(source).resolve())


def labels(paths: list[Path]) -> list[str]:
    """The paths below the folder in which all of them lie."""
    folder = common_folder(paths)
    return [str(path.relative_to(folder)) for path in paths]


def common_folder(paths: list[Path]) -> Path:
    """The deepest folder in which all paths lie."""
    first, *others = (path.parent for path in paths)
    return next(
        folder for folder in (first, *first.parents) if all(other.is_relative_to(folder) for other in others)
    )


class Fetched:
    """The files of standard input or a URL in the temporary folder `folder`, which is deleted with this object.

    DumpError if the source cannot be read, or the disk is too small for it.
    """

    def __init__(self, source: str) -> None:
        self.folder = folder_of(self)
        try:
            if source == STDIN:
                self.paths = [self._spooled(sys.stdin.buffer, "stdin")]
            else:
                self.paths = self._downloaded(source)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise DumpError(
                    f"{source}: {self.folder.parents[1]} is too small for it; set TMPDIR to a folder on a larger disk"
                ) from error
            raise

    def _spooled(self, stream: IO[bytes], name: str) -> Path:
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(stream, file, _PIECE)
        return target

    def _downloaded(self, url: str) -> list[Path]:
        scheme = url.partition("://")[0].lower()
        if scheme in ("file", "local"):
            raise DumpError(f"{url}: is a file of this machine; give its path, without {scheme}://")
        package = _PACKAGES.get(scheme)
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]

            files, place = url_to_fs(url)
        except ImportError as error:
            raise DumpError(
                f"{url}: addresses with {scheme}:// need a package; pip install {package or 'fsspec'}, or download the "
                "dump and give the file"
            ) from error
        except ValueError as error:
            raise DumpError(f"{url}: there is no such kind of address ({one_line(error)})") from error
        try:
            return self._copied(url, files, place, walk=not scheme.startswith("http"))
        except DumpError:
            raise
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            raise _unfetched(url, error) from error
        except Exception as error:  # every file system has errors of its own
            raise _unfetched(url, error) from error

    def _copied(self, url: str, files: Any, place: str, *, walk: bool) -> list[Path]:
        """The files at `place` of the address; walk: it may be a pattern or a folder."""
        names = [place]
        if walk and glob.has_magic(place):
            names = sorted(files.glob(place))
        elif walk and files.isdir(place):
            names = sorted(files.find(place))
        if not names:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", place)
        paths = []
        inner = [Path("/") / inside(url, name.lstrip("/")) for name in names]
        for name, label in zip(names, labels(inner), strict=True):
            with files.open(name, "rb") as stream:
                paths.append(self._spooled(stream, label))
        return paths


def _unfetched(url: str, error: Exception) -> DumpError:
    return DumpError(
        f"{url}: cannot be fetched ({one_line(error)}); look at the address and the network, or download the dump and "
        "give the file"
    )


def located(source: str) -> tuple[list[Path], Fetched | None]:
    """The files or folders that a source names, and the object that holds them if they were fetched."""
    if source == STDIN and sys.stdin.isatty():
        raise DumpError(
            "- reads what is piped in, and nothing is; for example: zcat dump.jsonl.gz | ssrem ingest -"
        )
    if is_remote(source):
        fetched = Fetched(source)
        return fetched.paths, fetched
    if not _is_pattern(source):
        return [Path(source)], None
    names = sorted(glob.glob(source, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    paths = [path for path in map(Path, names) if not path.is_dir()]
    if not paths:
        raise DumpError(f"{source}: there is no such file, and none that it matches as a pattern")
    return paths, None


def _is_pattern(source: str) -> bool:
    return glob.has_magic(source) and not Path(source).exists()


def _fixed(path: PurePosixPath) -> int:
    """How many parts of a pattern come before the first part with a wildcard."""
    return next(number for number, part in enumerate(path.parts) if glob.has_magic(part))
