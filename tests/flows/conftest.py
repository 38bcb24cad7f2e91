"""Prefect's server for flows in this process, and a server of the web."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@pytest.fixture(scope="module")
def prefect_server() -> Iterator[None]:
    """One for all tests of a file, which are of the group "prefect" and so share a worker."""
    from prefect import settings
    from prefect.testing.utilities import prefect_test_harness

    left_out = (settings.PREFECT_UI_ENABLED, settings.PREFECT_API_BLOCKS_REGISTER_ON_START)
    with (
        settings.temporary_settings(dict.fromkeys(left_out, False)),
        prefect_test_harness(server_startup_timeout=180),
    ):
        yield


@pytest.fixture
def web() -> Iterator[tuple[str, list[Any]]]:
    """A web server and what was posted to it."""
    posted: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if self.path == "/broken" else 204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", posted
        server.shutdown()
