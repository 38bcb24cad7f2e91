"""What commands run with Prefect. It takes a second to import, so flows and repairs are loaded here alone."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from flows.orchestration import settings
from tasks.warehouse.home import Warehouse


def flow(name: str, home: Warehouse, module: str | None = None) -> Callable[..., Any]:
    """The flow `name`, of flows/NAME.py or another module of flows, ready to run on the home folder.

    Raises HomeError if the home folder cannot be written.
    """
    settings.prepare(home.root)
    run: Callable[..., Any] = getattr(import_module(f"flows.{module or name}"), name)
    return run


def repair(home: Warehouse) -> list[str]:
    """Repair what is damaged; returns a line for each damage. Raises HomeError if the home folder is in use."""
    settings.prepare(home.root)  # a stage that is run again is a task of Prefect's
    repaired: list[str] = import_module("tasks.maintenance.repair").repair.fn(str(home.root))
    return repaired
