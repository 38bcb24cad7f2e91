"""Flow `drop_folder`: land the dumps in a folder, and move them out of it."""

from __future__ import annotations

from pathlib import Path

from ssrem.errors import DumpError, GateError
from ssrem.flows.ingest import ingest
from ssrem.flows.orchestration.options import DumpOptions
from ssrem.tasks.ingest.drop_folder import DONE, REJECTED, RejectedError, complete, file_away
from ssrem.tasks.stage.stage import Resources


def drop_folder(
    folder: str,
    home: str = "warehouse",
    settle: float = 5.0,
    dump: DumpOptions = DumpOptions(),
    announce: bool = True,
    resources: Resources = Resources(),
) -> dict[str, str]:
    """Land every complete dump of the folder; returns for each file or folder what became of it.

    Dumps that land are moved to `done/`; dumps that cannot land to `rejected/`, with the reason in a file beside
    them. After all were tried, RejectedError names the first rejected one. A dump that fails for another reason, such
    as a full disk, stays where it is.

    Args:
        folder: Folder in which each file or folder is a dump
        settle: Seconds without a change after which a dump is complete
        dump: How the dumps are read and landed; each corpus is named after its file
        announce: Emit the event `corpus.landed` for each new corpus
    """
    if dump.name is not None:
        raise DumpError(
            f"the corpora of a drop folder are named as their files; leave out the name {dump.name}"
        )
    outcomes, rejected = {}, []
    for path in complete(Path(folder), settle):
        try:
            corpus, new = ingest(str(path), home, dump, announce, resources)
        except (DumpError, GateError) as error:
            moved = file_away(path, REJECTED, str(error))
            rejected.append(f"{path.name} was moved to {moved}: {error}")
            continue
        file_away(path, DONE)
        outcomes[path.name] = f"landed as {corpus}" if new else f"is there already, as {corpus}"
    if rejected:
        more = f" (and {len(rejected) - 1} more)" if len(rejected) > 1 else ""
        raise RejectedError(f"{rejected[0]}{more}", outcomes)
    return outcomes
