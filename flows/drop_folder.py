"""Flow `inbox`: dumps that appeared in a drop folder land, and are moved out of the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows.ingest import ingest
from flows.orchestration.failure_hook import tell
from ssrem.errors import DumpError, GateError
from tasks.ingest.drop_folder import DONE, REJECTED, complete, file_away


@flow(name="inbox", on_failure=[tell], on_crashed=[tell])
def inbox(
    folder: str,
    home: str = "warehouse",
    settle: float = 5.0,
    format: str | None = None,
    mapping: dict[str, str] | None = None,
    speakers: str = "auto",
    pseudonymise: bool = False,
    pseudonym_key_file: str | None = None,
    announce: bool = True,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> dict[str, str]:
    """Land what is complete in the drop folder, one dump a file or folder; name to what became of it.

    What did not change for `settle` seconds is complete. What landed is moved to `done/`, what cannot land to
    `rejected/` with the reason in a file beside it; DumpError, after all others were looked at, says which. What
    fails for another reason, such as a full disk, stays where it is.
    """
    room: dict[str, Any] = {"memory_limit": memory_limit, "threads": threads}
    options: dict[str, Any] = {"format": format, "mapping": mapping, "speakers": speakers}
    options |= {"pseudonymise": pseudonymise, "pseudonym_key_file": pseudonym_key_file}
    found, refused = {}, []
    for path in complete(Path(folder), settle):
        try:
            corpus, new = ingest(str(path), home, announce=announce, **options, **room)
        except (DumpError, GateError) as error:
            moved = file_away(path, REJECTED, str(error))
            refused.append(f"{path.name} was moved to {moved}: {error}")
            continue
        file_away(path, DONE)
        found[path.name] = f"landed as {corpus}" if new else f"is there already, as {corpus}"
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise DumpError(f"{refused[0]}{more}")
    return found
