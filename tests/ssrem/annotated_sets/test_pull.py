"""Pulling public sets from a local server, and the registry: what is kept, what is not, and what is said."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ssrem.annotated_sets import LAYOUTS, layout_called
from ssrem.annotated_sets.known import KnownSet, known_sets, pull
from ssrem.errors import AnnotationError

BODY = b'[{"context": "a", "response": "b", "annotations": {"overall": [1, 2]}}]'


class Authors(ThreadingHTTPServer):
    """Serves BODY at /set.json, less than it promises at /short.json, more at /long.json; counts what is asked."""

    requests = 0


class Handler(BaseHTTPRequestHandler):
    server: Authors

    def do_GET(self) -> None:
        self.server.requests += 1
        body = {"/set.json": BODY, "/short.json": BODY[:20], "/long.json": BODY * 1000}.get(self.path)
        if body is None:
            self.send_error(404, "Not Found")
            return
        self.send_response(200)
        promised = len(BODY) if self.path == "/short.json" else len(body)
        self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Not to the terminal."""


@pytest.fixture
def authors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Authors]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Authors(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def known(server: Authors, file: str = "set.json") -> KnownSet:
    url = f"http://127.0.0.1:{server.server_port}/{file}"
    digest = hashlib.sha256(BODY).hexdigest()
    return KnownSet("mine", url, digest, len(BODY), "eval", 1, "none", "Nobody")


def said(one: KnownSet, folder: Path) -> str:
    """What the failure says, which leaves nothing behind."""
    before = sorted(folder.glob("*")) if folder.exists() else []
    with pytest.raises(AnnotationError) as raised:
        pull(one, folder)
    assert "\n" not in str(raised.value)
    assert sorted(folder.glob("*")) == before
    assert not list(folder.glob(".*"))
    return str(raised.value)


def test_a_set_is_fetched_once(authors: Authors, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    path, new = pull(known(authors), folder)
    assert (path, new, path.read_bytes()) == (folder / "mine.json", True, BODY)
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(folder.iterdir()) == [path]
    assert pull(known(authors), folder) == (path, False)
    assert authors.requests == 1


def test_a_wrong_checksum_or_more_than_was_registered_keeps_nothing(authors: Authors, tmp_path: Path) -> None:
    assert "is not what was registered" in said(known(authors, "long.json"), tmp_path)
    other = replace(known(authors), sha256="0" * 64)
    message = said(other, tmp_path)
    assert f"what {other.url} holds is not what was registered" in message
    assert "not 000000000000…), so it was deleted" in message


def test_a_body_that_is_cut_short_and_a_file_that_is_not_there(authors: Authors, tmp_path: Path) -> None:
    fault = f"the connection ended after 20 of {len(BODY)} bytes"
    message = said(known(authors, "short.json"), tmp_path)
    assert f"cannot be fetched ({fault}); try again, or fetch" in message
    one = known(authors, "gone.json")
    by_hand = f"fetch {one.url} by hand to {tmp_path / 'mine.json'}"
    assert said(one, tmp_path) == f"mine: cannot be fetched (HTTP 404 Not Found); {by_hand}"


def test_without_a_network(authors: Authors, tmp_path: Path) -> None:
    with socket.socket() as nobody:  # bound, so that nobody else listens there, and not listening
        nobody.bind(("127.0.0.1", 0))
        one = replace(known(authors), url=f"http://127.0.0.1:{nobody.getsockname()[1]}/set.json")
        message = said(one, tmp_path)
    assert "mine: cannot be fetched (Connection refused); fetch http://127.0.0.1" in message
    nowhere = replace(one, url="http://no-such-host.invalid/set.json")
    assert f"by hand to {tmp_path / 'mine.json'}" in said(nowhere, tmp_path)


def test_something_else_in_its_place_is_left(authors: Authors, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("my own")
    assert "is something else; remove it" in said(known(authors), tmp_path)
    assert (tmp_path / "mine.json").read_text() == "my own"
    assert authors.requests == 0


def test_a_set_without_a_checksum_is_fetched_by_hand(authors: Authors, tmp_path: Path) -> None:
    one = replace(known(authors), sha256=None)
    fault = "mine: no checksum is registered to verify a download"
    assert said(one, tmp_path).startswith(f"{fault}; fetch {one.url} by hand")
    (tmp_path / "mine.json").write_bytes(BODY)
    assert pull(one, tmp_path) == (tmp_path / "mine.json", False)
    assert authors.requests == 0


# The registry


@pytest.mark.parametrize("name", known_sets())
def test_the_registry(name: str) -> None:
    one = known_sets()[name]
    assert name == one.name == name.lower()
    assert one.layout.partition(":")[0] in LAYOUTS
    assert one.responses > 0 and one.licence and "http" in one.citation
    assert (one.sha256 is None) == (one.bytes is None)
    if one.sha256 is None:
        assert one.url.startswith("https://")
        return
    host, owner, repository, commit, *path = one.url.removeprefix("https://").split("/")
    assert host == "raw.githubusercontent.com" and owner and repository and path
    assert re.fullmatch("[0-9a-f]{40}", commit)  # a version, which its authors cannot change
    assert re.fullmatch("[0-9a-f]{64}", one.sha256)
    assert not one.map or layout_called(one.layout.partition(":")[0]).takes_mapping
