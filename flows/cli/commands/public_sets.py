"""`ssrem annotations`: public annotated sets, which are listed and fetched; neither step starts Prefect."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.options import Parser, as_json, home

if TYPE_CHECKING:
    from tasks.warehouse.home import Warehouse


def add(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add the verb to the command's."""
    about = "public responses with human scores: list and fetch them from where their authors publish them"
    steps = verbs.add_parser("annotations", help=about, description=about).add_subparsers(
        title="steps", dest="step", required=True, metavar="STEP", parser_class=Parser
    )
    about = "list the public sets that are known, with their licences"
    steps.add_parser("list", help=about, description=about, parents=[home(), as_json()])
    about = "fetch public sets, check them, and show their licences; ssrem agree NAME then takes them by name"
    pull = steps.add_parser("pull", help=about, description=about, parents=[home(), as_json()])
    pull.add_argument("name", nargs="+", metavar="NAME", help="sets that ssrem annotations list names")
    pull.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help="folder for the files (default: annotated-sets in the home folder, where names are looked up)",
    )


def public_sets(options: argparse.Namespace, home: Warehouse) -> None:
    """Do the step that the options name."""
    (_pull if options.step == "pull" else _list)(options, home)


def _list(options: argparse.Namespace, home: Warehouse) -> None:
    from flows.cli import output as show
    from ssrem.annotated_sets.known import known_sets
    from tasks.agreement.annotated_sets import pulled

    sets = known_sets().values()
    there = {known.name: known.file(pulled(home)).exists() for known in sets}
    if options.json:
        show.as_json([{**asdict(known), "pulled": there[known.name]} for known in sets])
        return
    rows = [
        {
            "name": known.name,
            "responses": known.responses,
            "layout": known.layout,
            "pulled": "yes" if there[known.name] else "no" if known.sha256 else "by hand",
            "licence": known.licence,
        }
        for known in sets
    ]
    show.tables({"public annotated sets": rows})
    print("next: ssrem annotations pull NAME")


def _pull(options: argparse.Namespace, home: Warehouse) -> None:
    from flows.cli import output as show
    from ssrem.annotated_sets.known import known_sets
    from ssrem.annotated_sets.pull import pull
    from ssrem.errors import AnnotationError
    from tasks.agreement.annotated_sets import pulled

    sets = known_sets()
    unknown = [name for name in options.name if name not in sets]
    if unknown:
        raise AnnotationError(f"there is no set {unknown[0]!r}; the sets are {', '.join(sets)}")
    found = []
    for name in dict.fromkeys(options.name):
        known = sets[name]
        path, new = pull(known, options.to or pulled(home))
        found.append({**asdict(known), "file": str(path), "new": new})
        if not options.json:
            print(f"{name}: {'fetched' if new else 'there already'}, {path}")
            print(f"  licence:  {known.licence}")
            print(f"  citation: {known.citation}")
            print(f"  sha256:   {known.sha256 or 'none is known; not checked'}")
    if options.json:
        show.as_json(found)
    elif options.to is None:
        print(f"next: ssrem agree {' '.join(dict.fromkeys(options.name))}")
    else:
        print(
            "next: ssrem agree FILE, with the layout that ssrem annotations list shows where it has a colon"
        )
