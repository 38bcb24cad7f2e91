"""The stages of the pipeline, one file each: they read the published snapshot and publish all outputs or none."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssrem.tasks import (
        annotate,
        annotated,
        caches,
        correlate,
        endpoints,
        ingest,
        privacy,
        promote,
        query,
        report,
        score,
        study,
        tables,
        train,
        versions,
    )

__all__ = [
    "annotate",
    "annotated",
    "caches",
    "correlate",
    "endpoints",
    "ingest",
    "privacy",
    "promote",
    "query",
    "report",
    "score",
]
__all__ += ["report", "score", "study", "tables", "train", "versions"]


def __getattr__(name: str) -> ModuleType:
    """A stage, imported when it is first used: a short command takes little more time than its imports."""
    if name not in __all__:
        raise AttributeError(name)
    return import_module(f"ssrem.tasks.{name}")
