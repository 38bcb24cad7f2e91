"""Training on human scores, from trained members, from where it was broken off; and what it would be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from transformers import BertTokenizer

from ssrem.cli.main import main
from ssrem.errors import AnnotationError, EvaluatorError, GateError
from ssrem.evaluators import load_evaluator, route
from ssrem.evaluators.blend.blend import Blend
from ssrem.tasks.agreement.annotated_sets import annotated_file, human_scores
from ssrem.tasks.scoring.test_split import score_corpus
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.training.dry_run import dry_run
from ssrem.tasks.training.settings import LabelOptions
from ssrem.tasks.training.train import train
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import COMMON
from support.tiny_transformer import write_bert

QUICK = {"epochs": 1, "max_train": 50, "hidden": 4, "mlp": 4, "tune_epochs": 1}
TINY = {
    "contexts": 12,
    "valid_contexts": 6,
    "epochs": 1,
    "max_tokens": 12,
    "freeze": 0,
    "negatives": "random-1",
}
GLOVE = "glove-6b-50d"
TOPICS = "pizza guitar football plane cheese piano goal beach soup drum train apple"


@pytest.fixture
def labels(tmp_path: Path) -> str:
    """24 responses to 12 contexts; good ones speak of what the context speaks of."""
    rows = []
    for number, word in enumerate(TOPICS.split()):
        for response, score in ((f"i like {word} too", 5), ("no thanks", 1 + number % 2)):
            rows.append(
                {
                    "context": [f"do you like {word}"],
                    "response": response,
                    "annotations": {"overall": [score, score]},
                }
            )
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(rows))
    return str(path)


def test_human_scores_are_learned_from_after_the_corpus(copy: Warehouse, labels: str) -> None:
    home = str(copy.root)
    arguments: dict[str, Any] = {"encoder": GLOVE, "config": QUICK}
    assert train("ruber-unref", ["tiny"], home, **arguments) == (1, True)
    human = LabelOptions((labels,))
    assert train("ruber-unref", ["tiny"], home, labels=human, **arguments) == (2, True)
    assert train("ruber-unref", ["tiny"], home, labels=human, **arguments) == (2, False)
    one, two = (load_evaluator(copy.models / "ruber-unref" / str(version)).signature for version in (1, 2))
    assert "tuned:0" in one and "tuned:24" in two
    card = json.loads((copy.models / "ruber-unref" / "2" / "card.json").read_text())
    assert card["human_scores"] == {"labels": {"criterion": "overall", "responses": 24, "scale": [1.0, 5.0]}}


@pytest.mark.parametrize(
    ("name", "human", "alone", "said"),
    [
        ("ssrem", True, False, "ssrem does not learn from human scores"),
        ("blend-ref", False, False, "blend-ref learns from human scores alone; give an annotated set"),
        (
            "ruber",
            True,
            True,
            "ruber learns human scores after it has learned from corpora; leave --labels-only out",
        ),
    ],
)
def test_labels_that_do_not_fit_the_evaluator(
    name: str, human: bool, alone: bool, said: str, copy: Warehouse, labels: str
) -> None:
    with pytest.raises(EvaluatorError, match=said):
        train(name, ["tiny"], str(copy.root), labels=LabelOptions((labels,), alone=alone) if human else None)


def test_annotated_sets_that_cannot_be_learned_from_together(
    copy: Warehouse, labels: str, tmp_path: Path
) -> None:
    home, folder = copy, tmp_path / "other"
    folder.mkdir()
    for name, text in (
        ("twin", Path(labels).read_text()),
        ("humour", Path(labels).read_text().replace("overall", "humour")),
    ):
        (tmp_path / f"{name}.json").write_text(text)
    (folder / "labels.json").write_text(
        Path(labels).read_text().replace("likes", "loves").replace("like", "love")
    )
    for other, said in (
        (tmp_path / "twin.json", "twin.json is the annotated set labels once more; name each set once"),
        (folder / "labels.json", "another annotated set is called labels too"),
    ):
        with pytest.raises(AnnotationError, match=said):
            human_scores([annotated_file(home, file) for file in (labels, str(other))], None)
    both = [annotated_file(home, file) for file in (labels, str(tmp_path / "humour.json"))]
    with pytest.raises(AnnotationError, match=r"humour\.json: the annotated set has no criterion 'overall'"):
        human_scores(both, "overall")
    assert [one.labels.criterion for one in human_scores(both, None).values()] == ["overall", "humour"]


def test_human_scores_alone_need_no_corpus(
    labels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, parts = str(tmp_path / "new"), ["--set", "parts=specificity+fluency+length"]
    learn = ["train", "blend", *parts, "--labels", labels, "--home", home]
    assert main(learn) == 1
    assert "no corpus has landed in" in capsys.readouterr().err
    assert main([*learn, "--labels-only"]) == 0
    said = capsys.readouterr()
    assert "blend: trained; version 1, in use: first version" in said.out
    assert (
        "blend: Spearman on labels, each context scored by weights learned from the other ones: " in said.err
    )
    blend = load_evaluator(tmp_path / "new" / "models" / "blend" / "1")
    assert isinstance(blend, Blend) and blend.weights["length"] > 0
    assert main([*learn, "--labels-only"]) == 0
    assert "nothing new to train; version 1" in capsys.readouterr().out
    assert main([*learn, "--labels-only", "--corpus", "none"]) == 1
    assert "no corpus has landed in" in capsys.readouterr().err


def test_human_scores_of_a_table(labels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        (row["context"][0], row["response"], row["annotations"]["overall"][0])
        for row in json.loads(Path(labels).read_text())
    ]
    table = tmp_path / "table.csv"
    lines = (f"{context},{response},{'pass' if score > 2 else 'fail'}" for context, response, score in rows)
    table.write_text("\n".join(["context,response,verdict", *lines]))
    learn = [
        "train",
        "blend",
        "--set",
        "parts=specificity+fluency+length",
        "--labels-only",
        "--home",
        str(tmp_path),
    ]
    assert main([*learn, "--labels", str(table)]) == 1
    assert "no column is known as score" in capsys.readouterr().err
    assert main([*learn, "--labels", labels, "--map", "score=verdict"]) == 1
    assert "--map does not apply to eval" in capsys.readouterr().err
    assert main([*learn, "--labels", str(table), "--map", "score=verdict"]) == 0
    assert f"{table}: read as csv: 24 responses" in capsys.readouterr().err
    card = json.loads((tmp_path / "models" / "blend" / "1" / "card.json").read_text())
    assert card["human_scores"]["table"] == {"criterion": "verdict", "responses": 24, "scale": [0.0, 1.0]}


def test_a_criterion_that_is_not_there(copy: Warehouse, labels: str) -> None:
    with pytest.raises(AnnotationError, match=r"no criterion 'humour'; name one of overall"):
        train("ruber-unref", ["tiny"], str(copy.root), labels=LabelOptions((labels,), "humour"))


def test_a_blend_takes_the_versions_in_use(copy: Warehouse) -> None:
    config = {"parts": "ssrem+rsrem", "contexts": 20, "valid_contexts": 5}
    assert train("blend", ["tiny"], str(copy.root), config=config) == (1, True)
    blend = load_evaluator(copy.models / "blend" / "1")
    assert isinstance(blend, Blend) and set(blend.weights) == {"ssrem", "rsrem"}
    signatures = [load_evaluator(copy.models / name / "1").signature for name in ("ssrem", "rsrem")]
    assert all(signature in blend.signature for signature in signatures)


def test_a_training_that_was_broken_off_goes_on(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"model": str(write_bert(tmp_path / "bert")), **TINY}
    monkeypatch.setattr(Stage, "gate", lambda _: (_ for _ in ()).throw(GateError("stop")))
    with pytest.raises(GateError):
        train("retrieval", ["tiny"], str(copy.root), config=config)
    (unfinished,) = (copy.root / "checkpoints").iterdir()
    assert any(unfinished.iterdir())
    monkeypatch.undo()
    assert train("retrieval", ["tiny"], str(copy.root), config=config) == (1, True)
    assert not unfinished.exists()


def test_a_slow_evaluator_is_scored_on_a_sample(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssrem.evaluators.cross_encoder.retrieval import Retrieval

    monkeypatch.setattr(Retrieval, "test_sample", 10)
    config = {"model": str(write_bert(tmp_path / "bert")), **TINY}
    train("retrieval", ["tiny"], str(copy.root), config=config)
    assert score_corpus("retrieval", 1, "tiny", str(copy.root))
    with copy.reader() as reader:
        truths = reader.execute(
            "SELECT kind, n FROM identification WHERE evaluator = 'retrieval' AND kind = 'GT'"
        ).fetchall()
        responses = reader.execute(
            "SELECT count(DISTINCT response_id), count(*) FILTER (WHERE f IS NULL) FROM scores "
            "WHERE evaluator = 'retrieval'"
        ).fetchall()
    assert truths == [("GT", 10)]
    assert responses == [(10, 0)]


def test_a_plan_says_what_would_be_trained(copy: Warehouse) -> None:
    before = copy.partitions()
    rows = dry_run(copy, ["ssrem", "bleu-2", "retrieval"], None, {"epochs": 3}, None, None)
    assert [(row["evaluator"], row["version"], row["corpora"]) for row in rows] == [
        ("ssrem", 2, "tiny"),
        ("bleu-2", 1, None),
        ("retrieval", 1, "tiny"),
    ]
    assert rows[0]["settings"]["epochs"] == rows[2]["settings"]["epochs"] == 3
    assert rows[0]["train_responses"] > 100
    assert rows[2]["encoder"] is None
    assert copy.partitions() == before


def test_settings_go_to_those_that_have_them() -> None:
    config = {"epochs": 2, "encoder": "glove-6b-50d", "seed": 1}
    assert route(["ssrem", "emb-average", "bleu-2"], config) == {
        "ssrem": {"epochs": 2, "seed": 1},
        "emb-average": {"encoder": "glove-6b-50d"},
        "bleu-2": {},
    }
    with pytest.raises(EvaluatorError, match=r"no setting epoks; did you mean epochs\?"):
        route(["ssrem", "bleu-2"], {"epoks": 2})
    with pytest.raises(EvaluatorError, match=r"bleu-2: no setting epochs; there are none"):
        route(["bleu-2"], {"epochs": 2})
    with pytest.raises(EvaluatorError, match="expected a whole number"):
        route(["ssrem"], {"epochs": "two"})


def test_a_masked_language_model_is_trained_by_name_once(
    copy: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = write_bert(tmp_path / "encoder")
    command = [
        "train",
        "masked-lm",
        "--home",
        str(copy.root),
        "--init",
        str(encoder),
        "--set",
        "max_tokens=12",
    ]
    assert main(command) == 1 and "has no mask token; name another BERT" in capsys.readouterr().err
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *COMMON][:14]
    BertTokenizer(vocab={word: at for at, word in enumerate(vocabulary)}).save_pretrained(encoder)
    command += ["steps=2", "batch_size=4", "held_out=8"]
    assert main(command) == 0
    line = capsys.readouterr().err.splitlines()[-1]
    assert re.match(
        r"ssrem: masked-lm: \S+, 2 steps; -log p of a token \d+\.\d\d before, \d+\.\d\d after", line
    )
    (folder,) = (copy.root / "masked-lm").iterdir()
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert main(command) == 0 and (folder / "model.safetensors").stat().st_mtime_ns == written
    assert not any((copy.root / "checkpoints").glob("masked-lm-*"))
    capsys.readouterr()
    assert main([*command, "--set", "steps=0"]) == 1
    assert main(["train", "masked-lm", "ssrem", "--home", str(copy.root)]) == 1
    steps, alone = capsys.readouterr().err.splitlines()
    assert "steps" in steps and "masked-lm and lm are no evaluators: train one alone" in alone
