"""Train: versions, what is recorded of them; human scores; trainings that go on."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from transformers import BertTokenizer

from ssrem.cli.main import main
from ssrem.errors import AnnotationError, EvaluatorError, GateError, HomeError, SsremError
from ssrem.evaluators import load_evaluator, route
from ssrem.evaluators.blend import Blend
from ssrem.evaluators.judge.endpoint import Client
from ssrem.evaluators.language_model.likelihood import LmPmi
from ssrem.samples import TEST, TRAIN, VALID
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.annotated import annotated_file, human_scores
from ssrem.tasks.endpoints import connected
from ssrem.tasks.promote import challenges, promote
from ssrem.tasks.score import score_test_splits
from ssrem.tasks.settings import TrainSettings
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.train import checked, retrain, train, train_all
from ssrem.tasks.versions import SLOW, promoted, versions
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import COMMON, Made
from support.tiny_transformer import write_bert

SHORT = TrainSettings(seed=7, set={"epochs": 1, "reference": "embedding-average"})
TINY = ["contexts=12", "valid_contexts=6", "epochs=1", "max_tokens=12", "freeze=0"]
TOPICS = "pizza guitar football plane cheese piano goal beach soup drum train apple"


def rows(home: Warehouse) -> list[Any]:
    return home.query(
        "SELECT version, promoted, why FROM evaluators WHERE evaluator = 'ssrem' ORDER BY version"
    )


@pytest.fixture
def labels(tmp_path: Path) -> str:
    """24 responses to 12 contexts; good ones speak of what the context speaks of."""
    rated = [
        {"context": [f"do you like {word}"], "response": response, "annotations": {"overall": [score, score]}}
        for number, word in enumerate(TOPICS.split())
        for response, score in ((f"i like {word} too", 5), ("no thanks", 1 + number % 2))
    ]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(rated))
    return str(path)


def test_the_row_and_the_card_say_what_was_learned(made: Made) -> None:
    folder = made.home.models / "ssrem" / "1"
    card = json.loads((folder / "card.json").read_text())
    with made.home.reader() as reader:
        candidates = load_candidates(reader, ["tiny"])
    (row,) = versions(made.home, "ssrem")
    digests = dict(made.home.query("SELECT corpus, sha256 FROM corpora"))
    losses = "SELECT epoch, loss FROM learning_curves WHERE evaluator = 'ssrem' AND split = 'valid'"
    curve = dict(made.home.query(losses))
    sizes = [len(candidates.rows(split)) for split in (TRAIN, VALID, TEST)]
    assert all(sizes)
    assert [row["train_responses"], row["valid_responses"], row["test_responses"]] == sizes
    assert json.loads(row["corpora"]) == digests == card["corpora"]
    assert row["valid_loss"] == pytest.approx(min(curve.values()))
    assert curve[row["best_epoch"]] == min(curve.values()) and len(curve) == row["epochs"]
    assert (row["version"], row["promoted"], row["why"]) == (1, True, "first version")
    assert load_evaluator(folder).signature == row["signature"] == card["signature"]
    assert card["config"] == json.loads(row["config"])
    assert {p.suffix for p in folder.rglob("*") if p.is_file()} <= {".json", ".safetensors"}


def test_versions_one_at_a_time(copy: Warehouse) -> None:
    root = str(copy.root)
    keys = copy.query("SELECT key FROM runs WHERE stage = 'train' AND outputs LIKE '%ssrem%'")
    left = [copy.root / "checkpoints" / key[:16] for (key,) in keys]
    for folder in left:  # as if killed after publishing
        folder.mkdir(parents=True)
    assert train("ssrem", ["tiny"], root) == (1, False)  # as it was trained before
    assert [folder.exists() for folder in left] == [False]
    assert train("ssrem", ["tiny"], root, SHORT) == (2, True)
    assert rows(copy) == [(1, True, "first version"), (2, False, "waits for comparison with version 1")]
    after = copy.partitions()
    assert train("ssrem", ["tiny"], root, SHORT) == (2, False)
    assert copy.partitions() == after
    assert train("ssrem", ["tiny"], root) == (1, False)
    assert promoted(copy, ["ssrem", "rsrem"]) == [("rsrem", 1), ("ssrem", 1)]
    first, second = (load_evaluator(copy.models / "ssrem" / v).signature for v in "12")
    assert first != second and "seed:7" in second


def test_steps_can_be_replaced_by_tasks(copy: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call for each evaluator that learns, one for the test splits that it scores, and one for the decisions."""
    monkeypatch.setattr("ssrem.tasks.train.challenges", lambda home, names: names)  # the new version waits
    called: list[tuple[Any, ...]] = []

    def step(name: str, corpora: list[str], home: str, settings: TrainSettings, **_: Any) -> tuple[int, bool]:
        called.append((name, corpora, settings.config))
        return 2, True

    steps: dict[str, Any] = {
        "train": step,
        "score": lambda name, version, corpus, home, **_: called.append((name, version, corpus)),
        "decide_all": lambda home, names, margins, **_: called.append((names, margins.agreement)),
    }
    settings, names = TrainSettings(set={"epochs": 3}, encoder="wordllama"), ["ssrem", "emb-average"]
    done = train_all(names, None, str(copy.root), settings, **steps)
    assert done == {"emb-average": (1, True), "ssrem": (2, True)}
    config = "SELECT config->>'encoder' FROM evaluators WHERE evaluator = 'emb-average'"
    assert copy.query(config) == [("wordllama",)]
    learned = ("ssrem", ["tiny"], {"seed": 0, "epochs": 3})
    assert called == [learned, ("ssrem", 2, ["tiny"]), (names, 0.05)]


def test_a_loss_that_is_no_number_is_not_published(copy: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    from ssrem.evaluators.bilinear import Bilinear

    sound = Bilinear.fit

    def broken(self: Bilinear, *arguments: Any, **options: Any) -> Any:
        training = sound(self, *arguments, **options)
        history = tuple({**epoch, "valid_loss": float("nan")} for epoch in training.history)
        return dataclasses.replace(training, history=history)

    monkeypatch.setattr(Bilinear, "fit", broken)
    before = copy.partitions()
    with pytest.raises(GateError, match=r"learning_curves: expected \(loss\) to be finite"):
        train("ssrem", ["tiny"], str(copy.root), SHORT)
    assert copy.partitions() == before
    assert not (copy.models / "ssrem" / "2").exists()


def test_what_cannot_be_trained(made: Made, labels: str) -> None:
    root, sets = str(made.home.root), (labels,)
    human, alone = TrainSettings(labels=sets), TrainSettings(labels=sets, labels_only=True)
    humour, epoch = TrainSettings(labels=sets, criterion="humour"), TrainSettings(set={"epoch": 1})
    scores_alone = "blend-ref learns from human scores alone; give an annotated set"
    scores_after = "ruber learns human scores after it has learned from corpora; leave --labels-only"
    for name, corpus, settings, said in (
        ("ssremm", "tiny", SHORT, "did you mean ssrem"),
        ("ssrem", "tinny", TrainSettings(), "landed: tiny"),
        ("ssrem", "tiny", epoch, "no setting epoch"),
        ("ssrem", "tiny", human, "ssrem does not learn from human scores"),
        ("blend-ref", "tiny", TrainSettings(), scores_alone),
        ("ruber", "tiny", alone, scores_after),
        ("ruber-unref", "tiny", humour, r"no criterion 'humour'; name one with --criterion: overall"),
    ):
        with pytest.raises((EvaluatorError, HomeError, AnnotationError), match=said):
            train(name, [corpus], root, settings)
    with pytest.raises(EvaluatorError, match="ssrem does not learn from human scores"):
        train_all(["ruber-unref", "ssrem"], None, root, human)  # before the first one is trained
    assert made.home.query("SELECT count(*) FROM evaluators WHERE evaluator = 'ruber-unref'") == [(0,)]
    with pytest.raises(SsremError, match="need --labels FILE"):
        TrainSettings(criterion="humour")


def test_a_device_is_for_this_training_alone(copy: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("retrieval", "masked-lm"):
        assert main(["train", name, "--device", "tpu", "--home", str(copy.root)]) == 1
        assert "tpu" in capsys.readouterr().err.splitlines()[-1]
    likelihood = LmPmi()
    of_run = connected(likelihood, copy, Client(options={"device": "cpu", "batch_size": 3, "model": "other"}))
    assert (likelihood.settings.device, likelihood.settings.batch_size) == ("cpu", 3)
    assert of_run.settings.model_dump() == LmPmi().settings.model_dump()


def test_an_option_that_some_do_not_have_is_said_and_one_that_none_has_is_refused(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    checked(["retrieval", "ssrem"], TrainSettings(encoder="glove-6b-50d"), made.home)
    says = "ssrem: retrieval takes no encoder, so that --encoder glove-6b-50d does not change it\n"
    assert capsys.readouterr().err == says
    for option, given in (("negatives", "sc"), ("init", "all-minilm-l6-v2"), ("device", "cpu")):
        with pytest.raises(EvaluatorError, match=f"--{option} does not apply to rsrem, ruber-ref"):
            checked(["rsrem", "ruber-ref"], TrainSettings(**{option: given}), made.home)


def test_settings_go_to_those_that_have_them() -> None:
    config = {"epochs": 2, "encoder": "glove-6b-50d", "seed": 1}
    assert route(["ssrem", "emb-average", "bleu-2"], config) == {
        "ssrem": {"epochs": 2, "seed": 1},
        "emb-average": {"encoder": "glove-6b-50d"},
        "bleu-2": {},
    }
    for names, wrong, said in (
        (["ssrem", "bleu-2"], {"epoks": 2}, r"no setting epoks; did you mean epochs\?"),
        (["bleu-2"], {"epochs": 2}, r"bleu-2: no setting epochs; there are none"),
        (["ssrem"], {"epochs": "two"}, "epochs: input should be a valid integer, not 'two'"),
    ):
        with pytest.raises(EvaluatorError, match=said):
            route(names, wrong)


# Human scores


def test_human_scores_are_learned_from_after_the_corpus(copy: Warehouse, labels: str) -> None:
    home, quick = str(copy.root), {"epochs": 1, "max_train": 50, "hidden": 4, "mlp": 4, "tune_epochs": 1}
    plain, human = (TrainSettings(encoder="wordllama", set=quick, labels=of) for of in ((), (labels,)))
    assert train("ruber-unref", ["tiny"], home, plain) == (1, True)
    assert train("ruber-unref", ["tiny"], home, human) == (2, True)
    assert train("ruber-unref", ["tiny"], home, human) == (2, False)
    one, two = (load_evaluator(copy.models / "ruber-unref" / str(version)).signature for version in (1, 2))
    assert "tuned:0" in one and "tuned:24" in two
    card = json.loads((copy.models / "ruber-unref" / "2" / "card.json").read_text())
    assert card["human_scores"] == {"labels": {"criterion": "overall", "responses": 24, "scale": [1.0, 5.0]}}


def test_annotated_sets_that_cannot_be_learned_from_together(
    home: Warehouse, labels: str, tmp_path: Path
) -> None:
    text, other = Path(labels).read_text(), tmp_path / "other"
    other.mkdir()
    twin, humour, same_name = tmp_path / "twin.json", tmp_path / "humour.json", other / "labels.json"
    twin.write_text(text)
    humour.write_text(text.replace("overall", "humour"))
    same_name.write_text(text.replace("like", "love"))
    for file, criterion, said in (
        (twin, None, "twin.json is the annotated set labels once more; name it once"),
        (same_name, None, "another set is called labels too"),
        (humour, "overall", r"humour\.json: the annotated set has no criterion 'overall'"),
    ):
        with pytest.raises(AnnotationError, match=said):
            human_scores([annotated_file(home, one) for one in (labels, str(file))], criterion)
    both = human_scores([annotated_file(home, one) for one in (labels, str(humour))], None)
    assert [labels.criterion for _, labels in both.values()] == ["overall", "humour"]


def test_human_scores_of_a_table_need_no_corpus(
    labels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, new = tmp_path / "table.csv", tmp_path / "new"
    lines = ["context,response,verdict"]
    for row in json.loads(Path(labels).read_text()):
        verdict = "pass" if row["annotations"]["overall"][0] > 2 else "fail"
        lines.append(f"{row['context'][0]},{row['response']},{verdict}")
    table.write_text("\n".join(lines))
    parts = ["--set", 'parts=["fluency", "length"]']
    train_blend = ["train", "blend", *parts, "--home", str(new)]
    learn = [*train_blend, "--labels", str(table)]
    mapped = [*learn, "--labels-only", "--map", "score=verdict"]
    for wrong, says in (
        ([*learn, "--map", "score=verdict"], "no corpus has landed in"),
        ([*learn, "--labels-only"], "no column is known as score"),
        (
            [*train_blend, "--labels", labels, "--labels-only", "--map", "score=verdict"],
            "--map does not apply to eval",
        ),
    ):
        assert main(wrong) == 1
        assert says in capsys.readouterr().err
    assert main(mapped) == 0
    said = capsys.readouterr()
    assert "blend: trained; version 1, in use: first version" in said.out
    of_weights = "each context scored by weights learned from the other ones: "
    assert f"blend: Spearman on table, {of_weights}" in said.err
    assert f"{table}: read as csv: 24 responses, rated 0 to 1" in said.err
    assert "blend: learned from human scores (verdict, 0 to 1)" in said.err
    folder = new / "models" / "blend" / "1"
    blend, card = load_evaluator(folder), json.loads((folder / "card.json").read_text())
    assert isinstance(blend, Blend) and blend.weights["length"] > 0
    assert card["human_scores"]["table"] == {"criterion": "verdict", "responses": 24, "scale": [0.0, 1.0]}
    assert main(mapped) == 0
    assert "nothing new to train; version 1" in capsys.readouterr().out
    assert main([*mapped, "--corpus", "none"]) == 1
    assert "no corpus 'none' has landed in" in capsys.readouterr().err


def test_what_learns_from_human_scores_alone_learns_from_no_corpus(copy: Warehouse, labels: str) -> None:
    settings = TrainSettings(labels=(labels,), labels_only=True, set={"parts": ["novelty", "length"]})
    assert train("blend", ["tiny"], str(copy.root), settings) == (1, True)
    query = "SELECT corpora, train_responses, test_responses FROM evaluators WHERE evaluator = 'blend'"
    assert copy.query(query) == [("{}", 24, 0)]
    assert retrain(str(copy.root), ["blend"]) == {}
    never = "no version of it was trained here; ssrem train blend-fast makes one"
    assert retrain(str(copy.root), ["blend-fast"]) == {"blend-fast": never}
    # Versions can be compared on what has landed nevertheless.
    more = settings.model_copy(update={"set": {"parts": ["novelty"]}})
    assert train("blend", ["tiny"], str(copy.root), more) == (2, True)
    assert [(one.version, one.corpora) for one in challenges(copy)] == [(2, ("tiny",))]


# Members, transformers, language models


def test_a_blend_takes_the_versions_in_use(copy: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TrainSettings(set={"parts": ["ssrem", "rsrem"], "contexts": 20, "valid_contexts": 5})
    assert train("blend", ["tiny"], str(copy.root), settings) == (1, True)
    blend = load_evaluator(copy.models / "blend" / "1")
    assert isinstance(blend, Blend) and set(blend.weights) == {"ssrem", "rsrem"}
    signatures = [load_evaluator(copy.models / name / "1").signature for name in ("ssrem", "rsrem")]
    assert all(signature in blend.signature for signature in signatures)
    assert train("blend", ["tiny"], str(copy.root), settings) == (1, False)
    assert train("rsrem", ["tiny"], str(copy.root), TrainSettings(set={"epochs": 1})) == (2, True)
    monkeypatch.setattr("ssrem.tasks.promote.correlate_all", lambda *_, **__: [])
    promote("rsrem", 2, str(copy.root))
    assert train("blend", ["tiny"], str(copy.root), settings) == (2, True)


def test_vectors_that_have_changed_are_learned_from(copy: Warehouse, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    settings = TrainSettings(set={"epochs": 1}, encoder=f"file:{path}:uniform")
    words = sorted(
        {word for (text,) in copy.query("SELECT text FROM turns") for word in text.lower().split()}
    )
    for number, version in ((1, 2), (2, 3)):
        path.write_text(
            "".join(f"{word} {at % 7 + 1} {at % 5} {at % number}\n" for at, word in enumerate(words))
        )
        assert train("rsrem", ["tiny"], str(copy.root), settings) == (version, True)
        assert train("rsrem", ["tiny"], str(copy.root), settings) == (version, False)


def test_a_training_that_was_broken_off_goes_on_and_is_scored_on_a_sample_if_slow(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SLOW, "retrieval", (10, 50))
    settings = TrainSettings(set=TINY, negatives="random-1", init=str(write_bert(tmp_path / "bert")))
    with monkeypatch.context() as patch, pytest.raises(GateError):
        patch.setattr(Stage, "gate", lambda _: (_ for _ in ()).throw(GateError("stop")))
        train("retrieval", ["tiny"], str(copy.root), settings)
    (unfinished,) = (copy.root / "checkpoints").iterdir()
    assert any(unfinished.iterdir()) and not (copy.models / "retrieval").exists()
    assert train("retrieval", ["tiny"], str(copy.root), settings) == (1, True)
    assert not unfinished.exists()
    assert score_test_splits("retrieval", 1, ["tiny"], str(copy.root))
    of = "WHERE evaluator = 'retrieval'"
    assert copy.query(f"SELECT kind, n FROM identification {of} AND kind = 'GT'") == [("GT", 10)]
    assert copy.query(f"SELECT epochs, train_responses FROM evaluators {of}") == [(1, 12)]  # no epoch 0
    counts = "count(DISTINCT response_id), count(*) FILTER (WHERE f IS NULL)"
    assert copy.query(f"SELECT {counts} FROM scores {of}") == [(10, 0)]


def test_a_masked_language_model_is_trained_by_name_once(
    copy: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder, home = write_bert(tmp_path / "encoder"), ["--home", str(copy.root)]
    command = ["train", "masked-lm", *home, "--init", str(encoder), "--set", "max_tokens=12"]
    assert main(command) == 1 and "has no mask token; name another BERT" in capsys.readouterr().err
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *COMMON][:14]
    BertTokenizer(vocab={word: at for at, word in enumerate(vocabulary)}).save_pretrained(encoder)
    command += ["steps=2", "batch_size=4", "held_out=8"]
    assert main(command) == 0
    line = capsys.readouterr().err.splitlines()[-1]
    figures = r"-log p of a token \d+\.\d\d before, \d+\.\d\d after"
    assert re.match(rf"ssrem: masked-lm: \S+, 2 steps; {figures}", line)
    (folder,) = (copy.root / "masked-lm").iterdir()
    written = (folder / "model.safetensors").stat().st_mtime_ns
    for again in (command, [*command, "--device", "cpu"]):
        assert main(again) == 0 and (folder / "model.safetensors").stat().st_mtime_ns == written
    assert not any((copy.root / "checkpoints").glob("masked-lm-*"))
    capsys.readouterr()
    assert main([*command, "--set", "steps=0"]) == 1
    assert main(["train", "masked-lm", "ssrem", *home]) == 2
    assert main(["train", "masked-lm", "--encoder", str(encoder), *home]) == 2
    steps, *alone = capsys.readouterr().err.splitlines()
    assert "steps" in steps and len(alone) == 2
    assert all("masked-lm and lm are no evaluators: train one alone" in line for line in alone)
