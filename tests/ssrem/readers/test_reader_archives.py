"""Archives: dumps in them are read as if unpacked; what could do harm is refused in one line."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import signal
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.files import sources
from support.exports import EXPORTS, SLACK, TELEGRAM, Files, write_dump
from support.reader_rows import rows_of
from support.stages import run_python

LINE = b'{"conversation_id": "c", "speaker": "a", "text": "x"}\n'


def _zip(files: Files) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return sink.getvalue()


def _tar(files: Files, **kind: object) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for attribute, value in kind.items():
                setattr(member, attribute, value)
            archive.addfile(member, io.BytesIO(content))
    return sink.getvalue()


PACKED = {
    "zip": _zip,
    "tar": _tar,
    "tar.gz": lambda files: gzip.compress(_tar(files)),
    "tar.bz2": lambda files: bz2.compress(_tar(files)),
    "tar.zst": lambda files: zstandard.ZstdCompressor().compress(_tar(files)),
}


@pytest.mark.parametrize(
    ("kind", "format"),
    [*(("zip", format) for format in EXPORTS), *((kind, "slack") for kind in PACKED if kind != "zip")],
)
def test_a_dump_in_an_archive_is_read_as_if_unpacked(tmp_path: Path, kind: str, format: str) -> None:
    files = EXPORTS[format][0]
    named = {f"export/{name or 'dump'}": content for name, content in files.items()} | {"__MACOSX/._x": b"\0"}
    (tmp_path / f"export.{kind}").write_bytes(PACKED[kind](named))
    reader = open_dump(tmp_path / f"export.{kind}")
    assert reader.format == format
    rows = rows_of(reader)
    assert rows == rows_of(reader) == rows_of(open_dump(write_dump(files, tmp_path / "dump")))
    assert reader.bytes_read == reader.total_bytes


def test_a_readme_beside_dumps_is_none_whatever_it_looks_like(tmp_path: Path) -> None:
    files = {"dumps/a.jsonl": LINE, "dumps/README.txt": b"which contains 11,318 dialogues\n"}
    reader = open_dump(write_dump({"": _zip(files)}, tmp_path / "other.zip"))
    assert reader.format == "jsonl"
    assert "not read, since they are of no known format: README.txt" in reader.notes


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a/x.bin": b"\0", "b/y.bin": b"\1"}, ": no file in the folder is of a known format"),
        ({"a/x.jsonl": LINE, "b/y.csv": b"conversation,speaker,text\nc,a,x\n"}, "/b/y.csv is csv; the files of a c"),
        ({"x.json": b"[" + b",".join([LINE] * 3000) + b',{"te'}, "/x.json: broken JSON in line 3,001"),
        ({"a/x.csv": b"conversation,speaker,text,time\nc,a,x,03/04/2020\n"}, "/a/x.csv: dates such as 03/04/2020"),
    ],
)  # fmt: skip
def test_errors_while_it_is_read_name_the_archive_too(tmp_path: Path, files: Files, says: str) -> None:
    path = write_dump({"": _zip(files)}, tmp_path / "export.zip")
    with pytest.raises(DumpError) as raised:
        rows_of(open_dump(path))
    assert says in str(raised.value) and str(raised.value).startswith(str(path))
    assert tempfile.gettempdir() not in str(raised.value).replace(str(path), "")


def test_the_temporary_folder_goes_with_the_reader(tmp_path: Path) -> None:
    path = write_dump({"": _zip(SLACK)}, tmp_path / "export.zip")
    gc.freeze()  # so that only what is new is collected
    reader = open_dump(path)
    folder = reader.path
    assert folder.is_dir() and tmp_path not in folder.parents
    del reader
    gc.collect()
    gc.unfreeze()
    assert not folder.exists()


def test_the_temporary_folder_of_a_killed_reader_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_dump({"": _zip({".lock": b"its own", "a/dump.jsonl": LINE})}, tmp_path / "export.zip")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    code = """
import os, signal, sys
from ssrem.readers import open_dump
reader = open_dump(sys.argv[1])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_python(code, path).returncode == -signal.SIGKILL
    (abandoned,) = temporary.iterdir()
    reader = open_dump(path)
    assert len(rows_of(reader)) == 1
    assert not abandoned.exists() and len(list(temporary.iterdir())) == 1


def _link() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (_zip({"../out.jsonl": LINE}), "leads out of it"),
        (_zip({"/etc/out.jsonl": LINE}), "leads out of it"),
        (_tar({"a/../../out": LINE}), "leads out of it"),
        (_zip({"..\\out": LINE}), "leads out of it"),
        (_zip({"\\out": LINE}), "leads out of it"),
        (_link(), "is a link or a device"),
        (_tar({"x": b""}, type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link or a device"),
        (_tar({"x": b""}, type=tarfile.LNKTYPE, linkname="y"), "is a link or a device"),
        (_tar({"x": b""}, type=tarfile.FIFOTYPE), "is a link or a device"),
        (_zip({"in.zip": _zip({"x": LINE})}), "holds another archive, in.zip"),
        (gzip.compress(_tar({"in.tar": _tar({"x": LINE})})), "holds another archive, in.tar"),
        (_zip({}), "holds no file"),
        (_zip({"a/.hidden": LINE}), "holds no file"),
        (_zip({"x": LINE * 100})[:-30], "damaged or encrypted"),
        (_tar({"x": LINE * 100})[:700], "damaged or encrypted"),
        (gzip.compress(_tar({"x": LINE * 9999}))[:-40], "damaged or cut off"),
        (_tar({"x": LINE}) [:1024] + _tar({"x": LINE}), "is twice in the archive"),
        (_zip({"a.bin": b"\0", "b.bin": b"\1"}), "no file in the folder is of a known format"),
    ],
)  # fmt: skip
def test_what_could_do_harm_or_is_no_dump_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = write_dump({"": content}, tmp_path / "export")
    with pytest.raises(DumpError) as error:
        rows_of(open_dump(path))
    assert says in str(error.value) and str(error.value).isprintable()
    assert not (tmp_path / "out.jsonl").exists() and not (tmp_path.parent / "out").exists()


def test_bombs_and_too_many_files_are_refused_before_they_unpack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SMALL", 1 << 20)
    monkeypatch.setattr(sources, "MOST_FILES", 2)
    for kind in ("zip", "tar.gz"):
        path = write_dump({"": PACKED[kind]({"x.jsonl": b"\0" * (8 << 20)})}, tmp_path / "export")
        with pytest.raises(DumpError, match="looks like a bomb"):
            open_dump(path)
    with pytest.raises(DumpError, match="more than 2 files"):
        open_dump(write_dump({"": _zip(SLACK)}, tmp_path / "export"))


@pytest.mark.parametrize("name", ["../../out.jsonl", "/out.jsonl", "a/../../out.jsonl"])
@pytest.mark.parametrize("others", [{}, {"a.jsonl": LINE}])
def test_an_address_of_an_archive_places_no_file_outside(tmp_path: Path, name: str, others: Files) -> None:
    path = write_dump({"": _zip({**others, name: LINE})}, tmp_path / "in" / "evil.zip")
    before = sorted(tmp_path.rglob("*"))
    for address in (f"zip://::{path}", f"file://{path}"):
        with pytest.raises(DumpError, match="is a file of this machine, or in an archive; give the path"):
            open_dump(address)
    with pytest.raises(DumpError, match="leads out of it"):
        open_dump(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_of_an_export_with_its_pictures(tmp_path: Path) -> None:
    folder = write_dump({"result.json": TELEGRAM[""], "photos/a.jpg": b"\xff\xd8"}, tmp_path / "ChatExport")
    for format in (None, "telegram"):
        assert len(rows_of(open_dump(folder, format=format))) == 4
    with pytest.raises(DumpError, match="no file in the folder is of a known format"):
        open_dump(folder, format="csv")


def test_a_folder_of_several_dumps_names_them(tmp_path: Path) -> None:
    folder = write_dump({"a.jsonl": LINE, "b.txt": b"[12:30] <ann> Hi\n", "c.jpg": b"\0"}, tmp_path / "dumps")
    says = r"a.jsonl is jsonl, but .*b.txt is irc; .* give those of one alone, or --format, such as --format jsonl"
    with pytest.raises(DumpError, match=says):
        open_dump(folder)
    assert open_dump(folder, format="irc").format == "irc"
