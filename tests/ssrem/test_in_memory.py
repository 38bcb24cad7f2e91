"""Conversations in memory: the tables are those that the command line builds, and a model learns the same from them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ssrem
from ssrem.errors import DumpError, EvaluatorError, SsremError
from ssrem.readers.python_data import reader_of
from ssrem.responses import read_responses
from ssrem.schemas import TABLES
from ssrem.settings import TableSettings
from ssrem.tables.speaker_sets import DRAWS
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.tables import build
from ssrem.tasks.warehouse.home import Warehouse
from support.reader_rows import rows_of
from support.small_home import Made

TALK = [
    ("Ann", "Hi Ben!"),
    ("Ben", "Hello."),
    ("Ann", "Tea?"),
    ("Ann", "Or coffee?"),
    ("Ben", "Coffee, please."),
]
TALKS = [TALK, [("Ann", "Hi Cy!"), ("Cy", "Oh, you again."), ("Ann", "Yes.")]]


def published(home: Warehouse) -> dict[str, pl.DataFrame]:
    """The tables of the only corpus of a home folder, as `Conversations.frames` has them."""
    landed = ("conversations", "utterances", "quarantine")
    query = "SELECT * EXCLUDE corpus FROM {} ORDER BY {}"
    with home.reader() as connection:
        return {
            name: connection.sql(query.format(name, ", ".join(TABLES[name].key))).pl()
            for name in (*landed, "turns", "responses", *map(str.lower, DRAWS), "candidates")
        }


def assert_same(conversations: ssrem.Conversations, home: Warehouse) -> None:
    expected = published(home)
    assert conversations.frames.keys() == expected.keys()
    for name, frame in conversations.frames.items():
        # A quarantined row names the file that it was in, and lies there as it is written.
        differing = ["corpus", "file", "raw"] if name == "quarantine" else ["corpus"]
        assert frame.drop(differing).equals(expected[name].drop(differing[1:])), name


@pytest.fixture(scope="module")
def talks(made: Made) -> dict[str, list[dict[str, Any]]]:
    """The conversations of the small home folder."""
    by_id: dict[str, list[dict[str, Any]]] = {}
    for row in map(json.loads, made.dump.read_text(encoding="utf-8").splitlines()):
        by_id.setdefault(row.pop("conversation_id"), []).append(row)
    return by_id


def test_tables_and_model_are_those_of_the_command_line(made: Made, talks: Mapping[str, Any]) -> None:
    conversations = ssrem.conversations(talks)
    assert_same(conversations, made.home)
    assert not conversations.notes and conversations in {conversations}
    model = ssrem.SSREM().fit(conversations)
    with made.home.reader() as connection:
        query = "SELECT signature FROM evaluators WHERE evaluator = 'ssrem'"
        assert connection.execute(query).fetchall() == [(model.evaluator.signature,)]
    scores = model.score([("i like pizza", "cheese and soup"), (["so", "my guitar"], "a band", "a song")])
    assert scores.shape == (2,) and np.isfinite(scores).all()


THREADS = [
    {"conversation": f"c{n}", "id": f"{n}.{at}", "speaker": who, "text": text, "reply_to": to and f"{n}.{to}"}
    for n in range(30)
    for at, (who, text, to) in enumerate(
        [
            (f"p{n % 7}", "where are you from", None),
            (f"p{n % 5}x", "from the sea", "0"),
            (f"p{n % 3}y", "  ", "0"),
            (f"p{n % 7}", "is it far?", "1"),
            (f"p{n % 3}y", "not that far", "1"),
            (f"p{n % 7}", "I see", "4" if n % 2 else None),
        ]
    )
]


def as_conversations(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"conversation_id": id, "utterances": [row for row in rows if row["conversation"] == id]}
        for id in dict.fromkeys(row["conversation"] for row in rows)
    ]


class Dataset:
    """What a `datasets.Dataset` is here: its rows, one after another."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


@pytest.fixture
def threads(home: Warehouse, tmp_path: Path) -> Warehouse:
    """A home folder in which the threads landed."""
    path = tmp_path / "threads.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in THREADS), encoding="utf-8")
    land(str(path), str(home.root), DumpSettings(max_quarantine=1))
    build("threads", str(home.root), TableSettings(encoder="glove-6b-50d"))
    return home


def read(data: Any, folder: Path) -> list[dict[str, Any]]:
    """The messages that become tables, whatever shape they have, without the place of each in the data."""
    place = {"source", "file", "line", "raw"}
    rows = rows_of(reader_of(data, None, {}, folder))
    return [{k: row[k] for k in row.keys() - place} for row in rows if row["record"] == "message"]


def test_every_shape_gives_the_same_tables(threads: Warehouse, tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match="30 of 180 messages cannot be used: 30 no_text; the frame quarantine"
    ):
        assert_same(ssrem.conversations(THREADS, max_quarantine=1), threads)
    expected = read(THREADS, tmp_path)
    for frame in (pl.DataFrame, pd.DataFrame, Dataset, pa.Table.from_pylist):
        other = frame(THREADS)
        assert read(other, tmp_path) == expected


def test_ids_that_pandas_made_floats_are_integers(tmp_path: Path) -> None:
    rows = {"conversation": ["c"] * 4, "speaker": [1, 2, 3, 1], "text": [*"abcd"], "id": [1, 2, 3, 4]}
    frame = pd.DataFrame({**rows, "reply_to": [None, 1, 1, 2], "to": [None, 1, 1, 2]})
    floats = read(frame, tmp_path)
    assert floats == read(frame.astype({"reply_to": "Int64", "to": "Int64"}), tmp_path)
    for name in ("reply_to", "addressee"):
        assert [row.get(name) for row in floats] == [None, *"112"]


def test_a_row_may_be_a_conversation(tmp_path: Path) -> None:
    rows = [row for row in THREADS if row["text"].strip()]
    expected = read(rows, tmp_path)
    for data in (as_conversations(rows), pa.Table.from_pylist(as_conversations(rows))):
        assert read(data, tmp_path) == expected
    chats = [
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": f"Hello {n}"}] for n in range(4)
    ]
    log = read([{"messages": chat} for chat in chats], tmp_path)
    assert log == read(chats, tmp_path) and {row["speaker"] for row in log} == {"assistant", "user"}
    with pytest.raises(DumpError, match="speaker ids 'assistant' and 'user' are roles; they name seats"):
        ssrem.conversations(chats)


def test_lists_of_any_kind_may_hold_a_conversation(tmp_path: Path) -> None:
    said = [{"speaker": "Ann", "text": "Hi"}, {"speaker": "Ben", "text": "Hello"}]
    rows = {"conversation_id": ["a", "b"], "utterances": [said, said]}
    entry = pa.struct({"speaker": pa.string(), "text": pa.string()})
    kinds: list[Any] = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    schemas = [pa.schema({"conversation_id": pa.string(), "utterances": kind(entry)}) for kind in kinds]
    for data in (pl.DataFrame(rows), *(pa.table(rows, schema=schema) for schema in schemas)):
        assert [row["text"] for row in read(data, tmp_path)] == ["Hi", "Hello"] * 2


def test_sets_name_their_speaker_and_texts() -> None:
    sets = ssrem.conversations(TALKS).sets
    assert list(sets) == list(DRAWS)
    ann = sets["SC"].filter(speaker="Ann")
    assert ann.columns == ["set_id", "speaker", "split", "position", "text"]
    assert ann["text"].to_list() == ["Hi Ben!", "Tea? Or coffee?", "Hi Cy!", "Yes."]
    assert len(sets["Rand"]) > 0


def test_a_path_is_read_as_ingest_reads_it(made: Made) -> None:
    assert_same(ssrem.conversations(made.dump), made.home)


def test_columns_and_speakers_are_options(tmp_path: Path) -> None:
    frame = pl.DataFrame({"chat": [1, 1], "who": [7, 8], "says": ["Hi", "Hello"]})
    columns = {"conversation": "chat", "speaker": "who", "text": "says"}
    assert [row["speaker"] for row in rows_of(reader_of(frame, columns, {}, tmp_path))] == ["7", "8"]
    seated = ssrem.conversations([TALK] * 6, speakers="conversation")
    assert seated.frames["turns"]["speaker"][0] == "1/Ann" and seated.frames["sp"].is_empty()


def test_what_was_left_out_is_a_warning() -> None:
    alone = {"id": "a", "speaker": "Ann", "text": "Anyone?"}
    with pytest.warns(UserWarning) as warned:
        ssrem.conversations([[alone], *([alone, {"id": "b", "speaker": who, "text": "Hi"}] for who in "XY")])
    told = "\n".join(str(one.message) for one in warned)
    assert "in 1 of 3 conversations one speaker says everything" in told
    assert "message ids repeat across conversations ('a' in 3)" in told


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "there is no conversation"),
        ([[]], "there is no message"),
        (None, "the data are None, of type NoneType; give a list of conversations"),
        (TALK, r"conversation 1 is one message, \('Ann', 'Hi Ben!'\)"),
        ([["Hi", "Hello"]], "conversation 1, message 1 is 'Hi', of type str"),
        ([TALK, [("Ann", "Hi"), ("Ben", 5)]], "conversation 2, message 2: the text is 5, of type int, not a string"),
        ([[("Ann", "Hi", "now")]], "conversation 1, message 1 is .*of type tuple"),
        ([[{"speaker": "Ann"}]],
         "no key is known as conversation or text; .*, for example columns={'conversation': 'KEY'}"),
        ([[("Ann", "Hi"), ("Ann", "Hm")]], "there is no response: in each conversation one speaker says everything"),
        ([TALK] * 6, "seem to name seats, not people; give speakers='conversation'"),
        ([[("Ann", ""), ("Ben", "Hi")]], r"1 of 2 messages cannot be used: 1 no_text; such as data row 1"),
        ([{"a": 1}], r"no key is known as conversation or speaker or text; the keys are a; .*columns={"),
        ([{"conversation": 1, "speaker": 2, "text": 3}], "row 1: the text is 3, of type int"),
        ({1: TALK, "1": TALK}, "the conversations 1 and '1' have the same id as text; rename one"),
        (pl.DataFrame({"x": [1]}), "no column is known as .* or text; the columns are x"),
        (pl.DataFrame({"conversation": [1], "speaker": ["a"], "text": [3]}), "'text' .* of type int64, not texts"),
        (pd.DataFrame({"conversation": [1, 1], "speaker": ["a", "b"], "text": [3, "a"]}), "several types"),
        (pl.DataFrame({"conversation": [], "speaker": [], "text": pl.Series([], dtype=pl.String)}), "no row"),
        ("nowhere.csv", "nowhere.csv: there is no such file"),
    ],
)  # fmt: skip
def test_another_shape_is_refused_in_one_line(data: Any, message: str) -> None:
    with pytest.raises(DumpError, match=message) as raised:
        ssrem.conversations(data)
    assert "\n" not in str(raised.value) and "--" not in str(raised.value)


ROWS = [{"conversation": 1, "speaker": who, "text": text} for who, text in TALK]


@pytest.mark.parametrize("shape", [list, pl.DataFrame, Path])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"columns": {"time": "nope"}},
            r"columns={…} names the .* 'nope', which is not there; the .* are con",
        ),
        ({"columns": {"spk": "x"}}, "^columns={'spk': '…'}: there is no field 'spk'; did you mean speaker"),
        ({"encoding": "foo"}, "^encoding='foo': there is no such encoding"),
        ({"time_format": "%q %d"}, "^time_format='%q %d': "),
        ({"format": "slack"}, r"is not slack but looks like \w+; leave out format=… or give format='\w+'$"),
        ({"columns": ["text"]}, r"^columns=\['text'\]: it is a mapping of fields to columns"),
        ({"columns": {"text": 1}}, "write FIELD=COLUMN"),
        ({"time_format": 3}, "^time_format=3: it is a text"),
        ({"not_people": None}, r"^not_people=None: it is a list of names, such as \['Bot'\]"),
        ({"sead": 1}, "^sead=…: there is no such argument; did you mean seed"),
        ({"seed": "x"}, "^seed='x': it is a whole number"),
        ({"max_quarantine": "x"}, "^max_quarantine='x': it is a share"),
    ],
)
def test_wrong_arguments_are_named_as_python_has_them(
    tmp_path: Path, shape: Callable[[Any], Any], wrong: dict[str, Any], message: str
) -> None:
    pl.DataFrame(ROWS).write_csv(tmp_path / "talk.csv")
    data = tmp_path / "talk.csv" if shape is Path else shape(ROWS)
    with pytest.raises(DumpError, match=message) as raised:
        ssrem.conversations(data, **wrong)
    assert "--" not in str(raised.value) and "/data" not in str(raised.value)


def test_notes_name_no_options_of_the_command_line(tmp_path: Path) -> None:
    pl.DataFrame(ROWS).write_csv(tmp_path / "talk.txt")
    with pytest.warns(UserWarning, match="read as csv, by its content: .*; format=… overrides"):
        ssrem.conversations(tmp_path / "talk.txt")


@pytest.mark.parametrize(
    "wrong",
    [{"speakers": "seat"}, {"not_people": "bot"}, {"max_quarantine": 5}, {"seed": -1}, {"context_turns": 0}],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SsremError, match=str(next(iter(wrong.values())))):
        ssrem.conversations(TALKS, **wrong)


def test_a_text_that_is_nan_is_missing(tmp_path: Path) -> None:
    *said, missing = read([[*TALK, ("Ann", float("nan"))]], tmp_path)
    assert [row["text"] for row in said] == [text for _, text in TALK] and "text" not in missing


def test_a_model_scores_saves_and_loads(tmp_path: Path) -> None:
    pairs = [
        ("Do you like movies?", "I love them."),
        (["Hi!", "Do you like movies?"], "I love them.", "Yes!"),
    ]
    packaged = ssrem.load()
    packaged.save(tmp_path)
    assert np.array_equal(ssrem.load(tmp_path).score(pairs), packaged.score(pairs))
    as_dicts = [{"context": pair[0], "response": pair[1], "reference": None} for pair in pairs]
    assert np.isfinite(packaged.score(as_dicts)).all()
    assert ssrem.load(Path("ssrem")).evaluator.signature == packaged.evaluator.signature
    length = ssrem.Model("length")
    assert length.score(pairs[:1]).shape == (1,)
    assert ssrem.SSREM(seed=np.int64(2)).settings == {"seed": 2}
    judge = ssrem.Model("judge", model="m", base_url="http://localhost:1/v1")
    judge.save(tmp_path / "judge")
    assert ssrem.load(tmp_path / "judge").evaluator.signature == judge.evaluator.signature


def test_a_saved_model_comes_before_what_is_packaged_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ssrem").mkdir()  # a folder that holds no model, as in a clone of the project
    packaged = ssrem.load("ssrem").evaluator.signature
    ssrem.Model("judge", model="m", base_url="http://localhost:1/v1").save("ssrem")
    assert ssrem.load("ssrem").name == "judge" and packaged.startswith("ssrem|")


def test_a_context_has_a_turn_a_line_as_in_ssrem_score(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"context": "Hi!\n\n Any pets?", "response": "A cat"}]))
    (row,) = read_responses(str(tmp_path / "x.json")).rows
    message = {"role": "user", "content": [{"type": "text", "text": "Any pets?"}]}
    written = ["Hi!", "", "Any pets?"]
    contexts = ["Hi!\n\n Any pets?", written, np.array(["Hi!", "Any pets?"]), ["Hi!", message]]
    scores = ssrem.load().score([row.sample, *((context, "A cat") for context in contexts)])
    assert (scores == scores[0]).all() and scores[0] != ssrem.load().score([("Any pets?", "A cat")])[0]


def test_frames_are_scored() -> None:
    model = ssrem.Model("rouge-l")
    rows = {"context": [["Hi!"], ["Hi!", "Tea?"]], "response": ["Yes", "No"], "reference": [None, "No"]}
    arrays = pd.DataFrame({**rows, "context": [np.array(turns) for turns in rows["context"]]})
    for data in (pd.DataFrame(rows), arrays, pl.DataFrame(rows), pa.table(rows), arrays.to_numpy()):
        assert np.array_equal(model.score(data), [np.nan, 1], equal_nan=True)
    assert np.isnan(model.score([("Hi!", "Yes", float("nan")), (float("nan"), "Yes")])).all()
    unanswered = pd.DataFrame({"context": ["Hi!", "Hi!"], "response": ["Yes", None]})
    assert np.isnan(ssrem.Model("length").score(unanswered)).tolist() == [False, True]
    assert model.score(pd.Series([("Hi!", "Yes", "Yes")])).tolist() == [1]
    assert np.isnan(model.score(pl.DataFrame(rows).drop("reference"))).all()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: ssrem.Model("srsem"), "did you mean ssrem"),
        (lambda: ssrem.SSREM(epoch=3), "no setting epoch; did you mean epochs"),
        (lambda: ssrem.SSREM().score([("a", "b")]),
         r"ssrem is not trained yet; call fit\(conversations\), or ssrem.load"),
        (lambda: ssrem.Model("length").fit(TALKS), "length learns from nothing"),
        (lambda: ssrem.SSREM(encoder="glove-6b-50d").fit(TALKS), "no response of the .* split"),
        (lambda: ssrem.Model("length").score("Hi"), "the responses are 'Hi'"),
        (lambda: ssrem.Model("length").score(["Hi"]), "response 1 is 'Hi'"),
        (lambda: ssrem.Model("length").score([("Hi", 5)]), "response 1: the response and reference are 5 and None"),
        (lambda: ssrem.Model("length").score([(5, "Hi")]), "response 1: the context is 5"),
        (lambda: ssrem.Model("length").score([{"response": "Hi"}]), "response 1 has the keys response"),
        (lambda: ssrem.Model("length").score(pd.DataFrame({"response": ["Hi"]})),
         "response 1 has the keys response; .* or a frame with the columns context, response"),
        (lambda: ssrem.Model("length").score(pd.DataFrame({"context": ["a", ["b"]], "response": "c"})),
         "a column of the frame holds values of several types"),
        (lambda: ssrem.Model("length").save(__file__), "py cannot be written .*; give the path of a folder"),
        (lambda: ssrem.load("nowhere"), "nowhere is neither a folder nor a name; .* comes trained: .*ssrem"),
        (lambda: ssrem.load("ssremm"), r"ssremm is neither a folder nor a name; did you mean ssrem"),
        (lambda: ssrem.load(__file__), "is a file; ssrem evaluators import .* --home HOME adds"),
        (lambda: ssrem.load("ssrem").fit(TALKS), r"this ssrem was loaded, .* of a new ssrem.Model\('ssrem', …\)"),
        (lambda: ssrem.load(None), "None is neither a folder nor a name; .* comes trained: .*ssrem"),  # type: ignore[arg-type]
        (lambda: ssrem.load("cosine"), r"cosine needs no training; use ssrem.Model\('cosine'\)"),
        (lambda: ssrem.Model("blend", parts=["ruber"]).fit(TALKS), "ruber does not come trained"),
        (lambda: ssrem.load("ruber"), "ruber does not come trained; .* comes trained: .*ssrem"),
    ],
)  # fmt: skip
def test_wrong_uses_of_a_model_are_refused(use: Callable[[], object], message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        use()


def test_importing_ssrem_is_light() -> None:
    heavy = "{'numpy', 'duckdb', 'polars', 'torch', 'pyarrow'}"
    script = f"import sys, ssrem; assert not {heavy} & sys.modules.keys(); ssrem.conversations; import numpy"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert {*ssrem.__all__} <= {*dir(ssrem)}
    with pytest.raises(AttributeError, match="nothing"):
        ssrem.nothing  # noqa: B018


def test_bots_are_context_alone_and_sp_may_go_by_stated_addressees() -> None:
    rows = [
        {"conversation": f"c{n}", "speaker": who, "text": f"{who} {n}", "addressee": to}
        for n in range(20)
        for who, to in (("ann", None), ("bot", None), ("bob", "ann"))
    ]
    how: dict[str, Any] = {"speakers": "person", "addressees": "stated", "max_quarantine": 0}
    told = r"not counted as people.*'bot' \(20 messages\); not_people=\['none'\] counts"
    with pytest.warns(UserWarning, match=told):
        data = ssrem.conversations(rows, not_people=["bot"], **how)
    for name, frame in data.sets.items():
        assert "bot" not in frame["speaker"], name
    assert set(data.sets["SP"]["speaker"]) == {"bob"}
    assert set(data.frames["responses"]["speaker"]) == {"bob"}
    assert len(data.candidates.response) == 20
    with pytest.warns(UserWarning, match=r"probably no people.*'Bye' \(1 text in 20 of 20 messages\)"):
        greeted = [[("ann", f"hi {n}"), ("Bye", "bye")] for n in range(20)]
        data = ssrem.conversations(greeted, speakers="person")
    assert set(data.sets["SC"]["speaker"]) == {"ann", "Bye"}


def test_a_model_that_learned_nothing_warns() -> None:
    draw = random.Random(0)
    words = ["pizza", "guitar", "goal", "beach", "song", "team", "hotel", "soup"]
    talks = [
        {
            "conversation": f"c{n}",
            "speaker": f"p{(n + turn % 2) % 5}",
            "text": " ".join(draw.choices(words, k=4)),
        }
        for n in range(40)
        for turn in range(6)
    ]
    with pytest.warns(UserWarning, match=r"ssrem-paper: it is not above chance: .* where chance is 50%"):
        model = ssrem.Model("ssrem-paper", encoder="glove-6b-50d", epochs=1).fit(pl.DataFrame(talks))
    training = model.training
    assert training.warning in training.notes


def test_an_encoder_is_used_by_what_learns_nothing_or_refused() -> None:
    assert "glove-6b-50d" in ssrem.Model("cosine", encoder="glove-6b-50d").evaluator.signature
    with pytest.raises(EvaluatorError, match="length takes no encoder"):
        ssrem.Model("length", encoder="glove-6b-50d")
