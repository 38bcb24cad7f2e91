"""Prefect's server for flows in this process, and a server of the web."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@pytest.fixture(scope="module")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests of a file, which are of the group "prefect" and so share a worker.

    Its database is there before it starts, since migrating it takes ten seconds. Without heartbeats a
    flow ends at once, not at the next whole second.
    """
    from prefect import settings
    from prefect.server.database.orm_models import Base
    from prefect.testing.utilities import prefect_test_harness
    from sqlalchemy import create_engine
    from sqlalchemy.schema import CreateIndex, CreateTable

    folder = tmp_path_factory.mktemp("prefect")
    with create_engine(f"sqlite:///{folder / 'prefect-test.db'}").begin() as connection:
        for table in Base.metadata.sorted_tables:
            connection.execute(CreateTable(table))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))  # Prefect names one of them twice
    left_out = (
        *(settings.PREFECT_UI_ENABLED, settings.PREFECT_API_BLOCKS_REGISTER_ON_START),
        *(settings.PREFECT_API_DATABASE_MIGRATE_ON_START, settings.PREFECT_SERVER_ANALYTICS_ENABLED),
        settings.PREFECT_LOGGING_TO_API_ENABLED,
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        settings.temporary_settings(
            {**dict.fromkeys(left_out, False), settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        ),
    ):
        patch.setattr("prefect.testing.utilities.mkdtemp", lambda: str(folder))
        with prefect_test_harness(server_startup_timeout=180):
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
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", posted
        server.shutdown()
