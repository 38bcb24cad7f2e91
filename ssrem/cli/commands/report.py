"""`ssrem report`: write reports and open them."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from ssrem.cli import output
from ssrem.cli.start import flow
from ssrem.errors import SsremError
from ssrem.files import resolved
from ssrem.tasks.warehouse.home import Warehouse


def report(options: argparse.Namespace, home: Warehouse) -> None:
    """Write the report, or the page that compares two runs; print its path, and open it if that is wanted."""
    answer: dict[str, object] = {}
    if options.compare:
        path = answer["comparison"] = flow("compare")(*options.compare, str(home.root))
    else:
        figures = options.figures and str(_folder(options.figures))
        path = answer["report"] = flow("report")(str(home.root), figures, options.raw)
        if figures:
            answer["figures"] = figures
    if options.open:
        answer["opened"] = opened(Path(path))
    if options.json:
        output.as_json(answer)
        return
    print(path)
    if "figures" in answer:
        print(f"figures and tables: {answer['figures']}")


def _folder(path: Path) -> Path:
    """The path, resolved; SsremError where no folder can be made."""
    folder = resolved(path, SsremError)
    nearest = next(place for place in (folder, *folder.parents) if place.exists() or place.is_symlink())
    if not nearest.is_dir():
        raise SsremError(f"cannot write figures into {path}: {nearest} is not a folder; name another folder")
    return folder


def opened(path: Path) -> bool:
    """Whether a browser opened the page; if none did, a line says where the page is."""
    try:
        success = webbrowser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        success = False
    if not success:
        print(
            f"no browser could be started; open {path} in one, here or elsewhere: it is one file",
            file=sys.stderr,
        )
    return success
