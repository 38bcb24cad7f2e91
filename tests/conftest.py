"""What several rooms' tests share: a home folder, the small one that `ssrem run` made, and dumps to write."""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import copy, made

__all__ = ["copy", "made"]


@atexit.register
def close_stderr() -> None:
    """Suppress the list of leaked objects that DuckDB's bindings print at exit if Great Expectations used them."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# The same examples on every day, but for `make test-slow`, which asks for other ones by --hypothesis-profile random.
# No deadline: how long one takes says how busy the machine is.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", print_blob=True, deadline=None)
settings.load_profile("fixed")

Row = Mapping[str, Any] | bytes


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """End the id of a test of an `xdist_group` with the group, which is where the scheduler of pytest-xdist reads it.

    pytest-xdist 3.8 does that in a way that pytest 9.2 does not see, and sends the tests of a group to any worker.
    """
    for item in items if config.getoption("loadgroup", False) else ():
        if (mark := item.get_closest_marker("xdist_group")) and not item.nodeid.endswith(f"@{mark.args[0]}"):
            item._id = item.id.parse(f"{item.nodeid}@{mark.args[0]}")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: archives hold the time, and the workers must collect the same ids."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture
def home(tmp_path: Path) -> Warehouse:
    """A home folder in which nothing was written yet."""
    return Warehouse.at(tmp_path / "home")


@pytest.fixture
def write_dump(tmp_path: Path) -> Callable[..., str]:
    """Write canonical JSONL; bytes are lines as they are."""

    def write(rows: Iterable[Row], name: str = "dump") -> str:
        path = tmp_path / f"{name}.jsonl"
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return str(path)

    return write
