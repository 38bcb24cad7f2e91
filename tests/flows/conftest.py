"""Fixtures that look at what `ssrem run` made, Prefect's server for flows in this process, and a server of the web."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.small_home import copy, made
from support.web import web

__all__ = ["copy", "made", "prefect_server", "web"]


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
