"""The verb `forget`: the id in, what is left out."""

from __future__ import annotations

import argparse

from flows.cli import arguments as given
from flows.cli import output as show
from flows.orchestration import settings
from tasks.warehouse.home import Warehouse


def forget(options: argparse.Namespace, home: Warehouse) -> None:
    """Forget a person; the id itself stays in this process."""
    from ssrem.privacy.key import key_at_hand
    from tasks.privacy.people import who_is

    key = key_at_hand(options.pseudonym_key, outside=home.root)
    people = who_is(home, options.speaker, options.corpus, key)
    settings.prepare(home.root)
    from flows.forget import forget as flow

    done = flow(people, str(home.root), options.corpus, **given.room(options))
    corpora, evaluators = done["corpora"], done["evaluators"]
    names = sorted({row["evaluator"] for row in evaluators})
    again = [f"ssrem train {' '.join(names)}"] if names else []
    if options.json:
        show.as_json({**done, "next": again})
        return
    for corpus, of in corpora.items():
        print(
            f"{corpus}: {show.count(of['utterances'], 'utterance')} and "
            f"{show.count(of['conversations'], 'conversation')} removed"
        )
    if not corpora:
        print("forgotten before; the caches were emptied again")
    left = done["left"]
    print(
        f"left in {show.count(left['files'], 'Parquet file')}: {left['ids']} ids, {left['texts']} texts that nobody "
        f"else said, {left['vectors']} vectors of them"
    )
    print()
    if evaluators:
        rows = [{**row, "corpora": ", ".join(row["corpora"])} for row in evaluators]
        show.tables({"evaluators that learned from these corpora: not changed": rows})
    for file in done["other_files"]:
        print(f"note:   the id stands in {file}, which is not ssrem's to change")
    for command in again:
        print(f"next:   {command}   learns without them, and scores again")
