"""The verb by which reports are written and opened."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from flows.cli import output as show
from flows.orchestration import settings
from tasks.warehouse.home import Warehouse


def report(options: argparse.Namespace, home: Warehouse) -> None:
    """Write the report, or the page that compares two runs; say where it lies, and open it if that is asked."""
    settings.prepare(home.root)
    from flows import report as flows

    said: dict[str, object] = {}
    if options.compare:
        first, second = options.compare
        path = flows.compare(first, second, str(home.root))
        said["comparison"] = path
    else:
        figures = None if options.figures is None else str(options.figures.expanduser().resolve())
        path = flows.report(str(home.root), figures)
        said["report"] = path
        if figures:
            said["figures"] = figures
    if options.open:
        said["opened"] = opened(Path(path))
    if options.json:
        show.as_json(said)
        return
    print(path)
    if "figures" in said:
        print(f"figures and tables: {said['figures']}")


def opened(path: Path) -> bool:
    """Whether a browser took the page; where none did, a line says so."""
    try:
        found = webbrowser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        found = False
    if not found:
        print(
            f"no browser could be started; open {path} in one, here or elsewhere: it is one file",
            file=sys.stderr,
        )
    return found
