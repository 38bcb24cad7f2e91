"""Fixtures that look at what `ssrem run` made, and Prefect's server for flows in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.small_home import copy, made

__all__ = ["copy", "made", "prefect_server"]


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """One for all tests of the group "prefect", which share a worker."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=60):
        yield
