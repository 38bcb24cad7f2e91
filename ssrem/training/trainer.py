"""The training loop: order of examples, early stopping, learning curve, checkpoint and resume, seeds, precision."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.samples import Progress, Rows
from ssrem.training import Training
from ssrem.training.checkpoint import Checkpoint

_ADAM = "adam."
# Examples are sorted by length within groups of this many batches, for little padding in a still random order.
_BUCKET = 50
_COUNTED = ("step", "total", "count", "history", "best_epoch", "best_loss")


class Group(NamedTuple):
    """Parameters by name, and their learning rate."""

    parameters: Mapping[str, torch.nn.Parameter]
    rate: float


@dataclass(frozen=True)
class Step:
    """Position within a training. number: steps done before, over all epochs. epoch: counted from 1.

    noise: generator of random numbers for the loss; its state is part of the checkpoint.
    """

    number: int
    epoch: int
    noise: torch.Generator


@dataclass(frozen=True)
class Loss:
    """Loss of a batch. mean: is minimised. total, count: the learning curve's train_loss is Σ total / Σ count."""

    mean: torch.Tensor
    total: float
    count: int

    @classmethod
    def averaged(cls, mean: torch.Tensor, count: int) -> Loss:
        """The loss of a batch whose mean over `count` examples is `mean`."""
        return cls(mean, float(mean.detach()) * count, count)


class Objective(Protocol):
    """What is learned: parameters, examples, loss and validation."""

    def groups(self) -> Sequence[Group]:
        """The parameters that learn; all names differ."""

    def epochs(self) -> Iterator[Sequence[Rows]]:
        """The batches of one epoch after another, without end; the same in every call, and equally many per epoch."""

    def loss(self, rows: Rows, step: Step) -> Loss:
        """The loss of one batch."""

    def validate(self, epoch: int) -> dict[str, float]:
        """Figures of an epoch for the history. Epoch 0 is before training.

        The epoch with the lowest `valid_loss` is kept; the last one if there is no such figure.
        """


@dataclass(frozen=True)
class Schedule:
    """Settings of a training. seed: of dropout and noise. clip: limit of the gradients' norm; None: no limit.

    weight_decay: of Adam, added to the gradients or, if `decoupled`, subtracted from the weights (AdamW).
    patience: epochs without a lower validation loss before training stops, counted from epoch `patience_from`; None: it
    never stops early. from_0: whether epoch 0, before training, is part of the history and can be the best one.
    warmup: share of the steps over which the rates rise from 0, before they fall to 0; None: constant rates.
    decay_patience: epochs without a lower validation loss before the rates fall to a tenth; None: never.
    bf16: the device on which mixed precision is used if it has bfloat16; None: float32.
    one_thread: whether torch runs on one thread, as suits small models; see the function `one_thread`.
    """

    epochs: int
    seed: int
    patience: int | None = None
    patience_from: int = 0
    from_0: bool = False
    clip: float | None = 1.0
    weight_decay: float = 0.0
    decoupled: bool = False
    warmup: float | None = None
    decay_patience: int | None = None
    bf16: torch.device | None = None
    one_thread: bool = True


class Curve(NamedTuple):
    """The course of a training. history: one dict per epoch. best_epoch: the epoch whose parameters were kept.

    seconds: duration. earlier: the part of `seconds` before the checkpoint from which the training continued.
    """

    history: tuple[dict[str, float], ...]
    best_epoch: int
    seconds: float
    earlier: float

    @property
    def best(self) -> dict[str, float]:
        """The entry of the epoch that was kept."""
        return next(entry for entry in self.history if entry["epoch"] == self.best_epoch)

    def training(
        self, began: float, rows: Mapping[str, int], figures: Mapping[str, float], notes: Sequence[str] = ()
    ) -> Training:
        """The record of the training. began: time.perf_counter when this process began its part of the training."""
        seconds = self.earlier + time.perf_counter() - began
        return Training(self.history, self.best_epoch, seconds, rows, figures, tuple(notes))


def train(
    objective: Objective,
    plan: Schedule,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> Curve:
    """Train, and leave the parameters in the state of the epoch with the lowest validation loss.

    The examples of a step depend only on the objective, dropout and noise on seed and step. A training that continues
    from `checkpoint` therefore has the result of an uninterrupted one. Raises EvaluatorError if a loss is not finite.
    """
    with one_thread() if plan.one_thread else nullcontext():
        return _Run(objective, plan).to_the_end(progress, checkpoint)


class _Run:
    """One training, step by step."""

    def __init__(self, objective: Objective, plan: Schedule) -> None:
        self.objective, self.plan = objective, plan
        groups = [group for group in objective.groups() if group.parameters]
        self.parameters = {name: value for group in groups for name, value in group.parameters.items()}
        self.rates = [group.rate for group in groups]
        self.device = next(iter(self.parameters.values())).device
        self.optimiser = torch.optim.Adam(
            [{"params": list(group.parameters.values())} for group in groups],
            weight_decay=plan.weight_decay,
            decoupled_weight_decay=plan.decoupled,
            foreach=False,
            fused=self.device.type == "cuda",
        )
        self.noise = torch.Generator().manual_seed(plan.seed)
        self.step, self.total, self.count = 0, 0.0, 0
        self.history: list[dict[str, float]] = []
        self.best_epoch = 0
        self.best_loss: float | None = None
        self.best = self._snapshot()
        self.began, self.earlier = time.perf_counter(), 0.0

    def to_the_end(self, progress: Progress | None, checkpoint: Checkpoint | None) -> Curve:
        """Do the remaining steps, then restore the best state."""
        epochs = self.objective.epochs()
        first = next(epochs)
        steps = len(first) * self.plan.epochs
        if saved := checkpoint.read() if checkpoint else None:
            self._restore(*saved)
        elif self.plan.from_0:
            self._measure(0)
        epochs = islice(chain([first], epochs), self.step // len(first), None)
        while self.step < steps and not self._stopped():
            epoch = self.step // len(first) + 1
            for rows in next(epochs)[self.step % len(first) :]:
                self._update(rows, epoch, self._share(steps))
                within = self.step % len(first) > 0
                if checkpoint and within and checkpoint.due(self.step):
                    self._write(checkpoint)
                if progress is not None:
                    progress(self.step, steps)
            self._measure(epoch)
            if checkpoint:
                self._write(checkpoint)
        if progress is not None and self.step < steps:
            progress(steps, steps)
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_(self.best[name])
        seconds = time.perf_counter() - self.began
        return Curve(tuple(self.history), self.best_epoch, seconds, self.earlier)

    def _update(self, rows: Rows, epoch: int, share: float) -> None:
        """Do one step, with `share` times the learning rates of the groups."""
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * share
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.plan.seed * 1_000_003 + self.step)
            with precision(self.plan.bf16):
                loss = self.objective.loss(rows, Step(self.step, epoch, self.noise))
            self._check(loss.total, epoch)
            self.optimiser.zero_grad()
            loss.mean.backward()  # type: ignore[no-untyped-call]
        if self.plan.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.plan.clip)
        self.optimiser.step()
        self.step, self.total, self.count = self.step + 1, self.total + loss.total, self.count + loss.count

    def _measure(self, epoch: int) -> None:
        """Add the epoch to the history, and keep its parameters if it is the best."""
        entry: dict[str, float] = {"epoch": epoch}
        if epoch:
            entry["train_loss"] = self.total / self.count
            entry["learning_rate"] = float(self.optimiser.param_groups[0]["lr"])
        self.total, self.count = 0.0, 0
        with torch.no_grad():
            entry |= self.objective.validate(epoch)
        self.history.append(entry | {"seconds": time.perf_counter() - self.began})
        loss = entry.get("valid_loss")
        if loss is not None:
            self._check(loss, epoch)
        if loss is None or self.best_loss is None or loss < self.best_loss:
            self.best_loss, self.best_epoch, self.best = loss, epoch, self._snapshot()

    def _check(self, loss: float, epoch: int) -> None:
        if not np.isfinite(loss):
            rates = " and ".join(f"{rate:g}" for rate in dict.fromkeys(self.rates))
            raise EvaluatorError(
                f"training diverged in epoch {epoch} (loss {loss}); lower the learning rate, now {rates}"
            )

    def _stopped(self) -> bool:
        """Whether the last `patience` epochs had no lower validation loss."""
        if self.plan.patience is None or not self.history:
            return False
        since = max(self.best_epoch, self.plan.patience_from)
        return self.history[-1]["epoch"] - since >= self.plan.patience

    def _share(self, steps: int) -> float:
        """The factor by which the groups' learning rates are multiplied in the next step."""
        if self.plan.warmup is not None:
            rising = max(1.0, self.plan.warmup * steps)
            return min(1.0, (self.step + 1) / rising, (steps - self.step) / max(1.0, steps - rising))
        share, lowest, worse = 1.0, float("inf"), 0
        for entry in self.history if self.plan.decay_patience is not None else ():
            worse = 0 if entry["valid_loss"] < lowest else worse + 1
            lowest = min(lowest, entry["valid_loss"])
            if worse > (self.plan.decay_patience or 0):
                share, worse = share * 0.1, 0
        return share

    def _snapshot(self) -> dict[str, torch.Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.parameters.items()}

    def _write(self, checkpoint: Checkpoint) -> None:
        tensors = {f"now/{name}": value.detach().cpu().numpy() for name, value in self.parameters.items()}
        tensors |= {f"best/{name}": value.numpy() for name, value in self.best.items()}
        for name, value in self.parameters.items():
            for kind, moment in self.optimiser.state[value].items():
                tensors[f"{_ADAM}{kind}/{name}"] = moment.detach().cpu().numpy()
        tensors["noise"] = self.noise.get_state().numpy()
        about = {name: getattr(self, name) for name in _COUNTED}
        checkpoint.write(self.step, tensors, about | {"seconds": time.perf_counter() - self.began})

    def _restore(self, tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        for name in _COUNTED:
            setattr(self, name, about[name])
        self.earlier = about["seconds"]
        self.began -= self.earlier
        self.noise.set_state(torch.from_numpy(tensors["noise"]))
        by_kind: dict[str, dict[str, torch.Tensor]] = {}
        for full, array in tensors.items():
            kind, _, name = full.partition("/")
            by_kind.setdefault(kind, {})[name] = torch.from_numpy(array)
        self.best = by_kind["best"]
        moments = {kind: values for kind, values in by_kind.items() if kind.startswith(_ADAM)}
        # Adam's count of steps is a scalar, on the CPU unless the update is fused; safetensors returns it with one
        # dimension.
        counted = self.device if self.device.type == "cuda" else "cpu"
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_(by_kind["now"][name])
                self.optimiser.state[value] = {
                    kind.removeprefix(_ADAM): values[name].reshape(()).to(counted, copy=True)
                    if kind == f"{_ADAM}step"
                    else values[name].to(value.device).clone()
                    for kind, values in moments.items()
                    if name in values
                }


def shuffled_epochs(
    count: int,
    size: int,
    seed: Sequence[int],
    *,
    taken: int | None = None,
    lengths: NDArray[Any] | None = None,
) -> Iterator[list[Rows]]:
    """Shuffled batches of `size` of `count` examples, for one epoch after another, without end; `seed` determines them.

    taken: examples per epoch; the next epoch continues with the following ones, so that all are used before any is
    repeated. lengths (count,): if given, a batch has examples of similar length; the order of the batches is random.
    """
    order, between = (np.random.default_rng([*seed[:-1], seed[-1] + stream]) for stream in (0, 1))
    left = np.zeros(0, dtype=np.int64)
    while True:
        while len(left) < (taken or count):
            left = np.concatenate([left, order.permutation(count)])
        rows, left = left[: taken or count], left[taken or count :]
        batches: list[Rows] = []
        for first in range(0, len(rows), size * _BUCKET):
            bucket = rows[first : first + size * _BUCKET]
            starts = np.arange(0, len(bucket), size)
            if lengths is not None:
                bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
                starts = between.permutation(starts)
            batches += [bucket[start : start + size] for start in starts.tolist()]
        yield batches


@contextmanager
def one_thread() -> Iterator[None]:
    """Context in which torch uses one thread: sums have one order on all machines, and cores are not oversubscribed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16: a CPU with AVX-512 BF16 or AMX, or a GPU with bfloat16."""
    if device.type == "cpu":
        known = torch.cpu.get_capabilities()
        return bool(known.get("avx512_bf16") or known.get("amx_bf16"))
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def precision(device: torch.device | None) -> AbstractContextManager[Any]:
    """Context in which products are in bfloat16 if the device has it, else, and for None, in float32."""
    if device is None or not has_bf16(device):
        return nullcontext()
    mixed: AbstractContextManager[Any] = torch.autocast(device.type, torch.bfloat16)
    return mixed
