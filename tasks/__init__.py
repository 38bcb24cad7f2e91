"""The stages of the pipeline, one file each: they read the published snapshot and publish all outputs or none."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssrem.tasks import annotate as annotate
    from ssrem.tasks import annotated as annotated
    from ssrem.tasks import caches as caches
    from ssrem.tasks import correlate as correlate
    from ssrem.tasks import distil as distil
    from ssrem.tasks import endpoints as endpoints
    from ssrem.tasks import ingest as ingest
    from ssrem.tasks import privacy as privacy
    from ssrem.tasks import promote as promote
    from ssrem.tasks import query as query
    from ssrem.tasks import report as report
    from ssrem.tasks import score as score
    from ssrem.tasks import study as study
    from ssrem.tasks import tables as tables
    from ssrem.tasks import train as train
    from ssrem.tasks import transfer as transfer
    from ssrem.tasks import versions as versions


def __getattr__(name: str) -> ModuleType:
    """The module `name`, imported when it is first used, so that a command imports only the stages it needs."""
    if find_spec(f"ssrem.tasks.{name}") is None:
        raise AttributeError(name)
    return import_module(f"ssrem.tasks.{name}")
