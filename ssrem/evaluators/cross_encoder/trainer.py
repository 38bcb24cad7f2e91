"""How a cross-encoder learns: Adam, warm-up and decay, the best epoch kept, and a state to go on from."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.cross_encoder.cross_encoder import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.inputs import Base, Inputs
from ssrem.evaluators.cross_encoder.model import CrossNet, logits
from ssrem.evaluators.cross_encoder.resume import Checkpoint
from ssrem.samples import Floats, Progress, Rows

# Batches are sorted by length within this many, which spares padding and keeps the shuffle.
_BUCKET = 20
_CLIP = 1.0


@dataclass(frozen=True)
class Examples:
    """Inputs with targets in [0, 1], float32 (m,), in groups: starts, int64 (n,), says where each begins.

    A group is a true response, first, and its negatives, or one annotated response.
    """

    inputs: Inputs
    targets: NDArray[np.float32]
    starts: Rows

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def sizes(self) -> Rows:
        """Samples of each group, int64 (n,)."""
        return np.diff(self.starts, append=len(self))

    def rows(self, groups: Rows) -> Rows:
        """Samples of `groups`, group by group."""
        return np.concatenate([np.arange(self.starts[g], self.starts[g] + self.sizes[g]) for g in groups])

    @cached_property
    def digest(self) -> str:
        """sha256 of tokens, targets and groups."""
        digest = hashlib.sha256(repr(self.inputs.ids).encode())
        for array in (self.inputs.first, self.targets, self.starts):
            digest.update(array.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Plan:
    """How to learn. loss: 'binary', 'softmax' or 'squared'. from_0: whether epoch 0 can be the best one."""

    loss: str
    epochs: int
    batch_size: int
    learning_rate: float
    head_learning_rate: float
    from_0: bool


def losses(kind: str, z: torch.Tensor, targets: torch.Tensor, groups: Rows) -> torch.Tensor:
    """Loss of each sample or, for 'softmax', of each group, of logits and targets (b,); groups: their sizes."""
    if kind == "squared":
        return (torch.sigmoid(z) - targets) ** 2
    if kind == "binary":
        return torch.nn.functional.binary_cross_entropy_with_logits(z, targets, reduction="none")
    parts = torch.split(z, groups.tolist())
    return torch.stack([part.logsumexp(dim=0) - part[0] for part in parts])


def learn(
    base: Base,
    net: CrossNet,
    train: Examples,
    valid: Examples,
    plan: Plan,
    config: CrossEncoderConfig,
    progress: Progress | None,
    kept: Checkpoint | None,
) -> tuple[tuple[dict[str, float], ...], int]:
    """Trains `net` and leaves it in the state of the epoch with the lowest validation loss.

    Gradients clipped to norm 1. Order and dropout of a step depend on seed and step alone, so that a training
    that goes on from `kept` is the one that was broken off. Gives the history and the best epoch.
    """
    began = time.perf_counter()
    steps_an_epoch = -(-len(train.starts) // plan.batch_size)
    steps = steps_an_epoch * plan.epochs
    optimiser = _optimiser(net, plan)
    found = kept.read() if kept else None
    if found is not None:
        best = _restore(net, optimiser, found[0])
        about = found[1]
        began -= about["seconds"]
    else:
        best = net.weights()
        about = {"step": 0, "total": 0.0, "history": [], "best_epoch": 0, "best_loss": None}
        if plan.from_0:
            about["history"].append(_measured(base, net, train, valid, plan, 0, None, began))
            about["best_loss"] = about["history"][0]["valid_loss"]
    while about["step"] < steps and not _finished(about, config):
        epoch, at = divmod(about["step"], steps_an_epoch)
        if at == 0:
            about["total"] = 0.0
        batches = _batches(train, plan.batch_size, [config.seed, 3, epoch])
        for groups in batches[at:]:
            _set_rate(optimiser, plan, about["step"], steps, config.warmup)
            about["total"] += _step(base, net, optimiser, train, groups, plan, config, about["step"])
            about["step"] += 1
            last = about["step"] % steps_an_epoch == 0
            if kept is not None and not last and kept.due(about["step"]):
                about["seconds"] = time.perf_counter() - began
                kept.write(about["step"], _tensors(net, optimiser, best), about)
            if progress is not None:
                progress(about["step"], steps)
        mean = about["total"] / len(train.starts)
        entry = _measured(base, net, train, valid, plan, epoch + 1, mean, began)
        about["history"].append(entry)
        if about["best_loss"] is None or entry["valid_loss"] < about["best_loss"]:
            about |= {"best_loss": entry["valid_loss"], "best_epoch": epoch + 1}
            best = net.weights()
        if kept is not None:
            about["seconds"] = time.perf_counter() - began
            kept.write(about["step"], _tensors(net, optimiser, best), about)
    if progress is not None and about["step"] < steps:
        progress(steps, steps)
    net.take(best)
    net.eval()
    return tuple(about["history"]), about["best_epoch"]


def _finished(about: Mapping[str, Any], config: CrossEncoderConfig) -> bool:
    """Whether the last epochs, `config.patience` of them, were none of them the best."""
    last = about["history"][-1]["epoch"] if about["history"] else 0
    return bool(last - about["best_epoch"] >= config.patience)


def _step(
    base: Base,
    net: CrossNet,
    optimiser: Any,
    train: Examples,
    groups: Rows,
    plan: Plan,
    config: CrossEncoderConfig,
    step: int,
) -> float:
    """One update; the sum over groups of their mean loss before it."""
    rows, sizes = train.rows(groups), train.sizes[groups]
    targets = torch.from_numpy(train.targets[rows]).to(base.device)
    with torch.random.fork_rng(devices=[base.device] if base.device.type == "cuda" else []):
        torch.manual_seed(config.seed * 1_000_003 + step)
        net.train()
        with _mixed(base, config):
            z = net(**base.batch(train.inputs, rows))
        loss = losses(plan.loss, z.float(), targets, sizes).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(net.trained.values(), _CLIP)
        optimiser.step()
    return float(loss.detach()) * len(groups)


def _measured(
    base: Base,
    net: CrossNet,
    train: Examples,
    valid: Examples,
    plan: Plan,
    epoch: int,
    train_loss: float | None,
    began: float,
) -> dict[str, float]:
    """An entry of the history."""
    z = logits(base, net, valid.inputs)
    if train_loss is None:
        train_loss = _mean_loss(plan, logits(base, net, train.inputs), train)
    entry = {"epoch": epoch, "train_loss": train_loss, "valid_loss": _mean_loss(plan, z, valid)}
    if not np.isfinite(entry["valid_loss"]):
        raise EvaluatorError(
            f"training diverged in epoch {epoch} (loss {entry['valid_loss']}); "
            f"lower learning_rate, now {plan.learning_rate}"
        )
    if valid.sizes.max() > 1:
        first = np.repeat(z[valid.starts], valid.sizes)
        above = (first > z) + 0.5 * (first == z)
        others = np.delete(above, valid.starts)
        entry["valid_gt_above"] = float(others.mean())
    return entry | {"seconds": time.perf_counter() - began}


def _mean_loss(plan: Plan, z: Floats, examples: Examples) -> float:
    targets = torch.from_numpy(examples.targets.astype(np.float64))
    return float(losses(plan.loss, torch.from_numpy(z), targets, examples.sizes).mean())


def _mixed(base: Base, config: CrossEncoderConfig) -> AbstractContextManager[Any]:
    on = config.bf16 == "auto" and base.device.type == "cuda" and torch.cuda.is_bf16_supported()
    mixed: AbstractContextManager[Any] = torch.autocast(base.device.type, torch.bfloat16, enabled=on)
    return mixed


def _batches(train: Examples, size: int, seed: list[int]) -> list[Rows]:
    """Groups of about one length together, batches in random order."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(train.starts))
    lengths = np.maximum.reduceat(train.inputs.lengths, train.starts)
    batches = []
    for first in range(0, len(order), size * _BUCKET):
        bucket = order[first : first + size * _BUCKET]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        batches += [bucket[start : start + size] for start in range(0, len(bucket), size)]
    return [batches[at] for at in generator.permutation(len(batches))]


def _optimiser(net: CrossNet, plan: Plan) -> torch.optim.Adam:
    body = [value for name, value in net.trained.items() if name.startswith("model.")]
    head = [value for name, value in net.trained.items() if not name.startswith("model.")]
    parts = [{"params": head, "base": plan.head_learning_rate}]
    parts += [{"params": body, "base": plan.learning_rate}] if body else []
    return torch.optim.Adam(parts, lr=0.0, foreach=False)


def _set_rate(optimiser: torch.optim.Adam, plan: Plan, step: int, steps: int, warmup: float) -> None:
    """Up from 0 over the share `warmup` of the steps, then down to 0."""
    rising = max(1.0, warmup * steps)
    share = min((step + 1) / rising, (steps - step) / max(1.0, steps - rising))
    for group in optimiser.param_groups:
        group["lr"] = group["base"] * min(1.0, share)


def _tensors(
    net: CrossNet, optimiser: torch.optim.Adam, best: Mapping[str, NDArray[np.float32]]
) -> dict[str, NDArray[Any]]:
    """Weights, best weights and the optimiser's moments, by name."""
    tensors: dict[str, NDArray[Any]] = {f"best/{name}": array for name, array in best.items()}
    for name, value in net.trained.items():
        tensors[f"now/{name}"] = value.detach().cpu().numpy()
        for key, moment in optimiser.state[value].items():
            tensors[f"adam.{key}/{name}"] = moment.detach().cpu().numpy()
    return tensors


def _restore(
    net: CrossNet, optimiser: torch.optim.Adam, tensors: Mapping[str, NDArray[np.float32]]
) -> dict[str, NDArray[np.float32]]:
    """Puts back what `_tensors` took; gives the best weights."""
    by_kind: dict[str, dict[str, NDArray[np.float32]]] = {}
    for full, array in tensors.items():
        kind, _, name = full.partition("/")
        by_kind.setdefault(kind, {})[name] = array
    net.take(by_kind.pop("now"))
    best = by_kind.pop("best")
    for name, value in net.trained.items():
        moments = {
            kind.removeprefix("adam."): found[name] for kind, found in by_kind.items() if name in found
        }
        # Adam keeps its count of steps, a scalar, on the CPU.
        optimiser.state[value] = {
            kind: torch.tensor(float(array[0]))
            if kind == "step"
            else torch.from_numpy(array).to(value.device)
            for kind, array in moments.items()
        }
    return best
