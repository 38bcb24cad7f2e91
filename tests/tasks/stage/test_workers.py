"""Shards on two workers of Dask: the tables are those of one process, also where a worker is killed in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from ssrem.errors import RunnerError
from ssrem.schemas import TABLES
from ssrem.tasks import caches as encoding
from ssrem.tasks import score as scoring
from ssrem.tasks import settings
from ssrem.tasks import tables as similarity
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import Runner
from ssrem.tasks.stage import shards
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import annotated_rows, write_conversations
from support.tiny_transformer import tokenizer, write_bert

WHEN = {"runs", "check_results"}
OF_THIS_RUN = {"trained_at", "decided_at", "promoted_at", "seconds"}


SAID = ("pizza", "guitar", "football", "plane", "the", "really", "like", "you", "think", "great")
"""Words of the conversations that the tiny transformer knows."""


class Watch:
    """On each worker: notes who works on a shard; a file `kill` has the first to begin one die on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def setup(self, worker: Any) -> None:
        pass

    def teardown(self, worker: Any) -> None:
        pass

    def transition(self, key: str, start: str, finish: str, **more: Any) -> None:
        if finish != "executing":
            return
        with (self.folder / "begun").open("a") as stream:
            stream.write(f"{os.getpid()} {key}\n")
        with suppress(FileNotFoundError):
            (self.folder / "kill").rename(self.folder / f"killed-{os.getpid()}")
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A corpus of 60 conversations, and nothing else yet."""
    folder = tmp_path_factory.mktemp("landed")
    write_conversations(folder / "tiny.jsonl")
    home = Warehouse.at(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssrem.tasks.stage.stage.Stage.gate", lambda stage: None)
        land(str(folder / "tiny.jsonl"), str(home.root))
    return home


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address of a cluster of two workers, and the folder in which they note what they do."""
    pytest.importorskip("distributed", reason="needs pip install 'ssrem[dask]'")
    folder = tmp_path_factory.mktemp("watch")
    from distributed import WorkerPlugin

    plugin: Any = type("WatchPlugin", (Watch, WorkerPlugin), {})(folder)
    with shards.connected(Runner(runner="dask")) as client:
        client.register_plugin(plugin)
        yield client.scheduler.address, folder


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "TEXTS", 200)
    monkeypatch.setattr(similarity, "MEMBERS", 600)
    monkeypatch.setattr("ssrem.evaluators.base.Evaluator.shard", 50)
    monkeypatch.setattr(scoring, "SAMPLES", 20)


def copy_of(landed: Warehouse, root: Path) -> Warehouse:
    shutil.copytree(landed.root, root)
    home = Warehouse.at(root)
    home.write_catalog(home.partitions())  # its views name the folder that they look into
    return home


def contents(home: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    """Every table's rows in order, without what is of the run that made them."""
    rows = {}
    with home.reader() as reader:
        for table in TABLES.values():
            names = [name for name in table.column_names if name not in OF_THIS_RUN]
            columns = ", ".join(f'"{name}"' for name in names)
            if table.name not in WHEN:
                rows[table.name] = reader.execute(
                    f'SELECT {columns} FROM "{table.name}" ORDER BY ALL'
                ).fetchall()
    return rows


@pytest.mark.slow
@pytest.mark.usefixtures("small_shards")
def test_two_workers_make_the_tables_of_one_process(
    landed: Warehouse, cluster: tuple[str, Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    address, watch = cluster
    annotated = tmp_path / "people_eval.json"
    annotated.write_text(json.dumps(annotated_rows()))
    tables_of = {}
    for runner in ("process", "dask"):
        home = copy_of(landed, tmp_path / runner)
        on = ["--home", str(home.root), "--runner", runner]
        on += ["--runner-address", address] if runner == "dask" else []
        assert main(["tables", *on]) == 0
        assert main(["train", "ssrem", "--set", "epochs=2", *on]) == 0
        assert main(["correlate", str(annotated), "--evaluator", "ssrem", "bleu-2", *on]) == 0
        tables_of[runner] = contents(home)
        assert not list(home.staging.glob("*"))
        if runner == "process":
            assert not (watch / "begun").exists()
    begun = [line.split()[0] for line in (watch / "begun").read_text().splitlines()]
    assert len(set(begun)) == 2
    assert len(begun) > 8
    assert {name for name, rows in tables_of["process"].items() if rows} >= {
        "scores",
        "set_similarity",
        "agreement",
    }
    assert tables_of["dask"] == tables_of["process"]


@pytest.mark.slow
@pytest.mark.usefixtures("small_shards")
def test_a_worker_killed_in_the_middle_of_a_shard(
    landed: Warehouse, cluster: tuple[str, Path], tmp_path: Path
) -> None:
    """Dask gives the shard to another worker, and starts a new one."""
    address, watch = cluster
    bert = write_bert(tmp_path / "bert")
    tokenizer(SAID).save_pretrained(bert)
    expected, home = (copy_of(landed, tmp_path / name) for name in ("expected", "home"))
    tables = ["tables", "--encoder", f"hf:{bert}", "--home"]
    assert main([*tables, str(expected.root)]) == 0
    (watch / "begun").unlink(missing_ok=True)
    (watch / "kill").touch()
    assert main([*tables, str(home.root), "--runner", "dask", "--runner-address", address]) == 0
    (killed,) = watch.glob("killed-*")
    begun = [line.split() for line in (watch / "begun").read_text().splitlines()]
    lost = {key for pid, key in begun if pid == killed.name.removeprefix("killed-")}
    assert lost & {key for pid, key in begun if pid != killed.name.removeprefix("killed-")}
    assert contents(home) == contents(expected)


def test_what_is_not_installed_is_told_at_once(
    landed: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "find_spec", lambda package: None)
    (tmp_path / "x.json").write_text("[]")
    for verb in (["tables"], ["train"], ["correlate", str(tmp_path / "x.json")]):
        assert main([*verb, "--home", str(landed.root), "--runner", "dask"]) == 1
        said = capsys.readouterr().err
        assert said == "ssrem: --runner dask is not installed; pip install 'ssrem[dask]'\n"


def test_an_address_needs_its_runner() -> None:
    with pytest.raises(RunnerError, match="--runner-address tcp://x:1 needs the kind of cluster"):
        Runner(runner_address="tcp://x:1")


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs pip install 'ssrem[dask]'")
    monkeypatch.setattr(shards, "CONNECT_SECONDS", 1)
    with (
        pytest.raises(RunnerError, match=r"^--runner dask: no cluster at tcp://127.0.0.1:9 \(.*\); start it"),
        shards.opened(Runner(runner="dask", runner_address="tcp://127.0.0.1:9")),
    ):
        pass
