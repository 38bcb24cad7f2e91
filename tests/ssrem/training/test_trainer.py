"""The training loop on a line through points: schedule, early stopping, batches, and a training that is broken off."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssrem.errors import EvaluatorError
from ssrem.evaluators import EVALUATORS
from ssrem.evaluators.base import Trained
from ssrem.registry import object_at
from ssrem.samples import Candidates, Rows
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Group, Loss, Schedule, Step, has_bf16, shuffled_epochs, train
from support.topical import topical_candidates, topical_encoder
from support.trained import KilledError, killed_at, other_topics


class Line:
    """y = 3x, learned by its slope. valid: the validation loss of each epoch, where it is not to be computed."""

    def __init__(self, valid: Sequence[float] = ()) -> None:
        self.slope = torch.nn.Parameter(torch.zeros(1))
        self.x = torch.linspace(-1, 1, 12)
        self.valid, self.rates = valid, list[float]()
        self.dtypes = set[torch.dtype]()

    def groups(self) -> Sequence[Group]:
        return [Group({"slope": self.slope}, 0.1)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.x), 4, [0, 1])

    def loss(self, rows: Rows, step: Step) -> Loss:
        x = self.x[torch.from_numpy(rows)]
        noise = 0.01 * torch.randn(len(rows), generator=step.noise) * torch.rand(len(rows))
        self.dtypes.add((x[:, None] @ self.slope[:, None]).dtype)
        return Loss.averaged(((x * self.slope - 3 * x + noise) ** 2).mean(), len(x))

    def validate(self, epoch: int) -> dict[str, float]:
        loss = ((self.x * self.slope - 3 * self.x) ** 2).mean()
        return {"valid_loss": self.valid[epoch - 1] if self.valid else float(loss)}


def test_the_best_epoch_is_kept_and_training_stops_early() -> None:
    valid = [5.0, 4.0, 4.5, 4.2, 1.0]
    line, slopes, calls = Line(valid), list[float](), list[tuple[int, int]]()

    def progress(done: int, steps: int) -> None:
        slopes.append(float(line.slope.detach()))
        calls.append((done, steps))

    curve = train(line, Schedule(9, 0, patience=2), progress=progress)
    assert [entry["epoch"] for entry in curve.history] == [1, 2, 3, 4]
    assert curve.best_epoch == 2 and curve.best["valid_loss"] == 4.0
    assert float(line.slope.detach()) == slopes[5] != slopes[-1]  # three steps an epoch
    assert calls[-2:] == [(12, 27), (27, 27)]
    assert train(Line(valid), Schedule(5, 0, patience=2, patience_from=3)).best_epoch == 5
    # Epoch 0 can be the best: validates epochs 0, 1 and 2; the first takes the last value.
    line = Line([2.0, 3.0, 1.0])
    curve = train(line, Schedule(2, 0, from_0=True))
    assert [entry["valid_loss"] for entry in curve.history] == [1.0, 2.0, 3.0]
    assert curve.best_epoch == 0 and float(line.slope.detach()) == 0
    with pytest.raises(
        EvaluatorError, match=r"diverged in epoch 2 \(loss nan\); lower the learning rate, now 0.1"
    ):
        train(Line([1.0, float("nan")]), Schedule(3, 0))


def test_rates_rise_and_fall_and_bf16_is_used_where_the_processor_has_it() -> None:
    falling = train(Line([3.0, 3.0, 3.0, 2.0]), Schedule(4, 0, decay_patience=1))
    rising = train(Line(), Schedule(4, 0, warmup=0.5))  # 12 steps, 6 of them up
    for curve, rates in ((falling, [0.1, 0.1, 0.1, 0.01]), (rising, [0.05, 0.1, 0.4 / 6, 0.1 / 6])):
        assert [entry["learning_rate"] for entry in curve.history] == pytest.approx(rates)
    cpu = torch.device("cpu")
    plain, mixed = Line(), Line()
    train(plain, Schedule(1, 0))
    train(mixed, Schedule(1, 0, bf16=cpu))
    assert plain.dtypes == {torch.float32}
    assert mixed.dtypes == {torch.bfloat16 if has_bf16(cpu) else torch.float32}


def test_batches_are_shuffled_and_of_about_one_length() -> None:
    epochs = shuffled_epochs(10, 4, [0], taken=5)
    taken = np.concatenate([np.concatenate(next(epochs)) for _ in range(4)])
    assert sorted(taken[:10]) == sorted(taken[10:]) == list(range(10))
    assert taken[:10].tolist() != list(range(10))
    lengths = np.random.default_rng(2).integers(0, 50, 1000)
    batches = next(shuffled_epochs(1000, 8, [3, 1], lengths=lengths))
    assert sorted(np.concatenate(batches)) == list(range(1000))
    assert np.mean([np.ptp(lengths[batch]) for batch in batches]) < 3
    assert lengths[batches[0]].mean() != min(lengths[batch].mean() for batch in batches)


@pytest.mark.parametrize(("step", "goes_on_at"), [(2, 1), (5, 5), (7, 7)])
def test_a_training_broken_off_ends_as_an_unbroken_one(tmp_path: Path, step: int, goes_on_at: int) -> None:
    """Killed before the first state is written, within an epoch, and after one."""
    plan = Schedule(4, 0, patience=3, warmup=0.2)
    unbroken, broken = Line(), Line()
    expected = train(unbroken, plan)

    def checkpoint(settings: str = "line") -> Checkpoint:
        return Checkpoint(tmp_path, settings, [unbroken.x.numpy()], every=4)

    with pytest.raises(KilledError):
        train(Line(), plan, progress=killed_at(step), checkpoint=checkpoint())
    steps: list[int] = []
    curve = train(broken, plan, progress=lambda done, _: steps.append(done), checkpoint=checkpoint())
    assert steps[0] == goes_on_at
    assert broken.slope.item() == unbroken.slope.item()
    without_time = [[entry | {"seconds": 0} for entry in one.history] for one in (curve, expected)]
    assert without_time[0] == without_time[1]
    assert (curve.earlier > 0) == (step > 2)  # in the time of the whole training
    assert curve.training(time.perf_counter(), {}, {}).seconds >= curve.earlier
    with pytest.raises(EvaluatorError, match="other settings or data"):
        train(Line(), plan, checkpoint=checkpoint("another"))


def candidates(count: int) -> Candidates:
    kinds = ("SC", "SP", "SS", "Rand")
    return topical_candidates(count, 4, lambda *drawn: dict.fromkeys(kinds, other_topics(*drawn, 1)))


def untrained(name: str, **settings: Any) -> Any:
    kind, encoder = object_at(EVALUATORS[name]), topical_encoder(4)
    if issubclass(kind, Trained):
        return kind(kind.settings_model(**settings), encoder)
    return kind(encoder, kind.config_class.of(settings))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("ssrem", {}),
        ("ruber-unref", {"hidden": 4, "mlp": 4}),
        ("adem-unref", {"utterance": 6, "context": 6, "decoder": 6, "latent": 2}),
    ],
)
def test_an_evaluator_continues_its_training(name: str, sizes: dict[str, int], tmp_path: Path) -> None:
    corpus, settings = candidates(50), {"epochs": 3, "batch_size": 16, **sizes}
    unbroken = untrained(name, seed=1, **settings)
    unbroken.fit(corpus)
    with pytest.raises(KilledError):
        untrained(name, seed=1, **settings).fit(corpus, progress=killed_at(5), checkpoint=tmp_path)
    broken, steps = untrained(name, seed=1, **settings), list[int]()
    broken.fit(corpus, progress=lambda done, _: steps.append(done), checkpoint=tmp_path)
    assert steps[0] == 4  # three batches an epoch
    assert broken.signature == unbroken.signature
    with pytest.raises(EvaluatorError, match="other settings or data"):
        untrained(name, seed=2, **settings).fit(corpus, checkpoint=tmp_path)
