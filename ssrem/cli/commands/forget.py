"""`ssrem forget`: delete a person."""

from __future__ import annotations

import argparse

from ssrem.cli import arguments, output
from ssrem.cli.start import flow
from ssrem.privacy.key import key_at_hand
from ssrem.tasks.privacy.people import who_is
from ssrem.tasks.warehouse.home import Warehouse


def forget(options: argparse.Namespace, home: Warehouse) -> None:
    """Forget a person; the flow gets a digest, so that the id itself stays in this process."""
    key = key_at_hand(options.pseudonym_key, outside=home.root)
    people = who_is(home, options.speaker, options.corpus, key)
    deleted = flow("forget")(people, str(home.root), options.corpus, arguments.resources(options))
    evaluators = deleted["evaluators"]
    names = sorted({row["evaluator"] for row in evaluators})
    commands = [f"ssrem train {' '.join(names)}"] if names else []
    if options.json:
        output.as_json({**deleted, "next": commands})
        return
    for corpus, of in deleted["corpora"].items():
        print(
            f"{corpus}: {output.count(of['utterances'], 'utterance')} and "
            f"{output.count(of['conversations'], 'conversation')} removed"
        )
    if not deleted["corpora"]:
        print("forgotten before; the caches were emptied again")
    left = deleted["left"]
    print(
        f"left in {output.count(left['files'], 'Parquet file')}: {left['ids']} ids, {left['texts']} texts that nobody "
        f"else said, {left['vectors']} vectors of them"
    )
    print()
    if evaluators:
        rows = [{**row, "corpora": ", ".join(row["corpora"])} for row in evaluators]
        output.tables({"evaluators that learned from these corpora: not changed": rows})
    for file in deleted["other_files"]:
        print(f"note:   the id stands in {file}, which is not ssrem's to change")
    for command in commands:
        print(f"next:   {command}   learns without them, and scores again")
