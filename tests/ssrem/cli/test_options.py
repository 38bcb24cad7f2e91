"""Options are made of the settings models: each field is an option with its text, and reaches the verb."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pydantic.fields import FieldInfo

from ssrem.cli import UsageError
from ssrem.cli.main import GROUPS, VERBS, main, parsed
from ssrem.registry import object_at
from ssrem.settings import Settings, pairs
from ssrem.tasks.settings import Resources

HUGE = str(10**400)

NEEDED = {
    "ingest": ["dump.jsonl"], "sql": ["SELECT 1"], "negatives": ["sc"], "forget": ["ann"],
    "correlate": ["README.md"], "validate": ["README.md"], "study": ["attacks"],
    "ratings collect": ["folder"], "ratings import": ["answers.json", "--batch", "folder"],
    "evaluators promote": ["ssrem", "1"], "evaluators rollback": ["ssrem"],
    "evaluators export": ["ssrem"], "evaluators import": ["file"], "ratings pull": ["fed"],
}  # fmt: skip
"""Verb → the arguments that it cannot do without."""

TEXTS = {
    "map": "speaker=Who", "set": "epochs=3", "asking": "timeout=3", "margin": "agreement=.2",
    "labels": "README.md", "labels_from": "judge", "criterion": "tone", "redundancy": "2", "scale": "7",
    "max_quarantine": "7%", "memory_limit": "1GB", "similarity": "all", "addressees": "stated",
    "speakers": "person", "split": "valid", "test": "perm-both",
    "encoder": "glove-6b-50d", "init": "tests", "model": "tests",
}  # fmt: skip
"""Field → what a user may give, where neither a word nor a number is."""


def options(verb: str) -> dict[str, Any]:
    found: dict[str, Any] = object_at(f"ssrem.cli.{VERBS[verb][0]}").options
    return found


def text(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def given(work: Any) -> Iterator[Settings]:
    """The models of settings that a verb gets."""
    call = work.args[0]
    nested = [call.resources] if hasattr(call, "resources") else []
    found = [one for one in work.keywords.values() if isinstance(one, Settings)]
    yield from (*found, *nested)


@pytest.mark.parametrize("verb", VERBS)
def test_every_setting_is_an_option_and_reaches_the_verb(verb: str) -> None:
    words = [*verb.split(), *NEEDED.get(verb, [])]
    models = list(map(type, given(parsed(words))))
    values = {}
    for at, field in enumerate({field: None for model in models for field in model.model_fields}):
        option = options(verb)[field]
        value = TEXTS.get(field, str(11 + at) if int in option.kinds else f"word-{at}")
        values[field] = option.checked([value] if option.several else bool in option.kinds or value)
        words += [option.flag, *([] if bool in option.kinds else [value])]
    reached = {type(one): one for one in given(parsed(words))}
    assert list(reached) == models
    for model, one in reached.items():
        for field, about in model.model_fields.items():
            form, mark, what = text(about).rpartition("=COLUMN: ")
            help = options(verb)[field].help
            assert help.startswith(form + mark) and what in help
            assert getattr(one, field) == values[field] != about.get_default(), field
        assert one.model_fields_set == set(model.model_fields)


@pytest.mark.parametrize("verb", [*VERBS, *GROUPS])
def test_help_shows_each_option_with_its_text(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "4000")
    assert main([*verb.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: ssrem {verb}" in shown
    for option in options(verb).values() if verb in VERBS else ():
        assert option.flag in shown
        assert option.help.partition("=")[2].partition(": ")[2] in shown or option.help in shown


def test_values_in_a_row_and_repeated_options_add_up() -> None:
    line = "correlate README.md --map context=a+b response=c --evaluator ssrem rsrem --map score=d --json"
    work: Any = parsed(line.split())
    assert work.keywords["evaluator"] == ("ssrem", "rsrem")
    assert work.keywords["sets"].map == {"context": "a+b", "response": "c", "score": "d"}
    assert work.args[0].json_


def test_one_option_of_two_models_reaches_both() -> None:
    work: Any = parsed(["run", "dump.csv", "--map", "speaker=a", "score=b", "--replace"])
    of_dump, of_sets = work.keywords["dump"], work.keywords["sets"]
    assert of_dump.map == of_sets.map == {"speaker": "a", "score": "b"}
    assert of_dump.replace and of_sets.replace


def test_a_hyphen_is_standard_input_and_words_may_begin_with_one() -> None:
    work: Any = parsed(["score", "-"])
    assert work.keywords["file"] == "-"
    one: Any = parsed(["score", "--response", "-5 degrees", "--context", "--really?", "--context", "b"])
    assert (one.keywords["response"], one.keywords["context"]) == ("-5 degrees", ("--really?", "b"))
    wait: Any = parsed(["sql", "SELECT 1", "--csv", "--timeout", "2m"])
    assert (wait.keywords["csv"], wait.keywords["timeout"]) == (True, 120)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("zzz", "there is no verb 'zzz'; the verbs are run, ingest, tables, "),
        ("trian", "there is no verb 'trian'; did you mean train?; see ssrem --help"),
        ("run --replce=yes", "there is no option --replce; did you mean --replace"),
        ("tables x", "x: one argument too many; see ssrem tables --help"),
        ("status a\nb", "a\\nb: one argument too many"),
        ("negatives", "GENERATOR is missing; see ssrem negatives --help"),
        ("ingest d.jsonl --name", "--name needs a value"),
        ("ratings import a.json", "--batch"),
        ("train --threads 0", "--threads: input should be greater than or equal to 1, not '0'"),
        ("train --memory-limit much", "--memory-limit: 'much' is no amount of memory, such as 2GB or 500MB"),
        ("train --set epochs", "--set: 'epochs' is not KEY=VALUE"),
        ("tables --similarity most", "--similarity: input should be a valid integer or input should be 'all"),
        ("ingest d.jsonl --max-quarantine=5", "is no percentage from 0% to 100%, such as 5%"),
        ("ingest d.jsonl --map speaker", "is not FIELD=COLUMN or FIELD=COLUMN+COLUMN, for example speaker="),
        ("ingest d.jsonl --wait soon", "--wait: 'soon' is no duration such as 90, 30m or 6h"),
        ("evaluators retrain --margin identification=2 agreement=3", "or equal to 1, not 2\n"),
        ("evaluators retrain --margin rho=1", "--margin: no setting rho; there are identification, "),
        ("score x.json --response a", "x.json and --response: give a file or one response, not both"),
        ("score --context a", "belong to --response; give it, too"),
        ("score", "give a file of responses, - for standard input, or one response by --response"),
        ("validate README.md --require low=much", "--require: input should be a valid number, not 'much'"),
        ("validate README.md --precision 90", "--precision: input should be less than or equal to 1"),
        ("ratings collect x --responses a", "--responses: 'a' is not NAME=FILE, such as gpt2=responses"),
        ("sql SELECT --csv --json", "an answer takes one form: --json or --csv"),
    ],
)
def test_a_wrong_command_is_one_line(command: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(re.split(" ", command)) == 2
    line = capsys.readouterr().err
    assert line.startswith("ssrem: ") and line.count("\n") == 1 and says in line


def test_evaluators_alone_lists_them() -> None:
    for words in ([], ["--json"], ["list"]):
        work: Any = parsed(["evaluators", *words])
        assert work.func.__name__ == "list_"


# Numbers and JSON that no library can hold


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--seed", value) for value in (HUGE, "9" * 5_000, "2147483648", "1e3", "NaN")),
        *((option, HUGE) for option in ("--context-turns", "--threads", "--similarity")),
    ],
)
def test_a_number_that_no_library_can_hold_is_refused(option: str, value: str) -> None:
    with pytest.raises(UsageError, match=option) as raised:
        parsed(["tables", option, value])
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("value", ["9999999999TB", "1KB", f"{HUGE}MB"])
def test_an_amount_of_memory_that_duckdb_cannot_have_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="is not from 1MB to 1000TB"):
        parsed(["tables", "--memory-limit", value])


def test_duckdb_takes_an_amount_of_memory_that_is_not_refused() -> None:
    with duckdb.connect() as connection:
        for value in ("1MB", "1.5 gib", "1000TB"):
            connection.execute(f"SET memory_limit = '{Resources(memory_limit=value).memory_limit}'")


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5_000])
def test_a_setting_that_is_no_json_is_text(value: str) -> None:
    assert pairs([f"epochs={value}"]) == {"epochs": value}


def test_a_home_folder_is_that_of_the_option_or_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def home(*words: str) -> Path:
        work: Callable[[], Any] = parsed(["status", *words])  # type: ignore[assignment]
        root: Path = work.args[0].home.root  # type: ignore[attr-defined]
        return root.resolve()

    assert home() == tmp_path / "warehouse"
    monkeypatch.setenv("SSREM_HOME", str(tmp_path / "set"))
    assert home() == tmp_path / "set"
    assert home("--home", "given") == tmp_path / "given"


def test_a_query_may_begin_with_a_comment() -> None:
    asked: Any = parsed(["sql", "-- How many?\nSELECT 1", "--csv"])
    assert asked is not None
    with pytest.raises(UsageError, match="no option"):
        parsed(["sql", "--how", "SELECT 1"])
