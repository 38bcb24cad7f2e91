"""What a dump holds lands or lies in quarantine; or nothing is published, and one line says why."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ssrem.errors import SsremError
from ssrem.readers import open_dump
from ssrem.tasks.ingest.land import land
from ssrem.tasks.warehouse.home import Warehouse
from support.random_examples import TIMES

GOOD = {"conversation": "elsewhere", "id": "good", "speaker": "ann", "text": "hi"}

_text = st.sampled_from(
    ["", " ", "a", "b", "\0", "\ud800", "é\u0301", "\u202e", "'; --", "c#0", "\x1b[2J"]
) | st.text(max_size=4)
_odd = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.lists(_text, max_size=2)
    | st.dictionaries(_text, _text, max_size=2)
)
_field = _text | _text | _text | _odd
_row = st.dictionaries(
    st.sampled_from(["conversation", "id", "speaker", "text", "reply_to", "addressee", "time", "x"]), _field
)
_talk = st.fixed_dictionaries(
    {"id": _field, "ratings": _odd, "utterances": st.lists(_row | _odd, max_size=4)}
)
_line = (_row | _row | _talk | _odd).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=20)


@settings(max_examples=6 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(_line, max_size=12), packed=st.booleans())
@example(lines=[b'{"\\ud800":""}', b"{}"], packed=False)
@example(lines=[b'{"a":{"\\udfff":1}}', b"{}"], packed=False)
def test_what_was_read_landed_or_is_quarantined(lines: list[bytes], packed: bool) -> None:
    content = b"\n".join([json.dumps(GOOD).encode(), *lines])
    with TemporaryDirectory() as folder:
        dump, home = Path(folder, "dump"), Warehouse.at(Path(folder, "home"))
        dump.write_bytes(gzip.compress(content) if packed else content)
        records = [row for batch in open_dump(dump, format="jsonl") for row in batch.to_pylist()]
        _land(dump, home, records)


def _land(dump: Path, home: Warehouse, records: list[dict[str, Any]]) -> None:
    messages = sum(row["record"] == "message" for row in records)
    try:
        land(str(dump), str(home.root), format="jsonl", speakers="person", max_quarantine=1.0)
    except SsremError as error:
        assert str(error).isprintable()
        assert home.partitions() == [] and not list(home.lake.glob("*")) and not list(home.staging.glob("*"))
        return
    with home.reader() as reader:
        counts = reader.execute(
            "SELECT messages_read, utterances, quarantined, (SELECT count(*) FROM utterances), "
            "(SELECT count(*) FROM quarantine WHERE record = 'message') FROM corpora"
        ).fetchall()
        rows = reader.execute("SELECT conversation_id, speaker, text FROM utterances").fetchall()
    ((read, landed, quarantined, stored, stored_apart),) = counts
    assert read == landed + quarantined == messages
    assert (stored, stored_apart) == (landed, quarantined)
    said = [(row["conversation_id"], row["speaker"], row["text"]) for row in records if not row["problem"]]
    for row in rows:
        said.remove(row)


def test_a_dump_that_ends_in_damage_publishes_nothing(home: Warehouse, tmp_path: Path) -> None:
    rows = [{**GOOD, "id": str(number), "text": str(number * 7919)} for number in range(20_000)]
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    (tmp_path / "dump").write_bytes(packed[: len(packed) * 4 // 5])
    with pytest.raises(SsremError, match="damaged or cut off"):
        land(str(tmp_path / "dump"), str(home.root))
    assert home.partitions() == [] and not list(home.staging.glob("*"))
    (tmp_path / "dump").write_bytes(packed)
    assert land(str(tmp_path / "dump"), str(home.root))[1]
