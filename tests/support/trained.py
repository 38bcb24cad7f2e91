"""Checks that every evaluator with learned weights must pass, and a training that is interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators import load_evaluator
from ssrem.samples import Candidates, Labels, Progress, Rows, Sample


class KilledError(Exception):
    """Stands for whatever ends a training before its time."""


def killed_at(step: int) -> Progress:
    """A progress callback that interrupts the training after `step`."""

    def progress(done: int, steps: int) -> None:
        if done == step:
            raise KilledError

    return progress


def other_topics(generator: np.random.Generator, topics: Rows, count: int) -> Rows:
    """Rows (n, count) of responses of other topics, in the texts of `topical_candidates`."""
    return np.array(
        [generator.choice(np.flatnonzero(topics != topic), count) * 3 + 2 for topic in topics.tolist()]
    )


Damage = Callable[[Path, dict[str, Any]], object]
"""Changes a saved evaluator: its folder, or the manifest before it is written back."""


def manifest_with(*place: str, value: Any) -> Damage:
    """Sets the value at this place of the manifest."""

    def change(folder: Path, manifest: dict[str, Any]) -> None:
        *outer, last = place
        for key in outer:
            manifest = manifest[key]
        manifest[last] = value

    return change


def weights_with_another_byte(folder: Path, manifest: dict[str, Any]) -> None:
    content = bytearray((folder / "weights.safetensors").read_bytes())
    content[-3] ^= 1
    (folder / "weights.safetensors").write_bytes(content)


def another_encoder(folder: Path, manifest: dict[str, Any]) -> None:
    WordAverage("other", ["x"], np.ones((1, 10))).save(folder / "encoder")


DAMAGES: dict[str, Damage] = {
    "weights": weights_with_another_byte,
    "bounds": manifest_with("bounds", "f", "high", value=3.0),
    "encoder": another_encoder,
}
"""Damages that no saved evaluator with f and an encoder of its own may be loaded with."""


def saved_and_loaded(evaluator: Any, folder: Path, samples: Sequence[Sample]) -> Any:
    """The evaluator after it was saved and loaded: of the same class and signature, with equal scores."""
    evaluator.save(folder)
    loaded = load_evaluator(folder)
    assert type(loaded) is type(evaluator) and loaded.signature == evaluator.signature
    assert np.array_equal(loaded.score(samples), evaluator.score(samples))
    return loaded


def check_damage_is_refused(evaluator: Any, folder: Path, damage: Damage) -> None:
    """Loading the damaged evaluator is an error of one line that names the folder."""
    evaluator.save(folder)
    manifest = folder / "evaluator.json"
    about = json.loads(manifest.read_text())
    damage(folder, about)
    manifest.write_text(json.dumps(about))
    with pytest.raises(EvaluatorError) as error:
        type(evaluator).load(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def check_seeded_whatever_the_threads(made: Callable[[int], Any], candidates: Candidates) -> None:
    """Weights follow the seed alone, and training leaves torch's threads and random state; made: by a seed."""
    state, before, signatures = torch.random.get_rng_state(), torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            evaluator = made(5)
            evaluator.fit(candidates)
            assert torch.get_num_threads() == threads
            signatures.append(evaluator.signature)
    finally:
        torch.set_num_threads(before)
    assert signatures[0] == signatures[1]
    assert torch.equal(torch.random.get_rng_state(), state)
    other = made(6)
    other.fit(candidates)
    assert other.signature.split("|w:")[1] != signatures[0].split("|w:")[1]


def check_scores_stand_alone(
    evaluator: Any, samples: Sequence[Sample], limits: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores depend on no other sample, order, number of threads or size of a chunk; limits: name → smaller one."""
    together, threads = evaluator.compute(samples), torch.get_num_threads()
    alone = np.concatenate([evaluator.compute([sample]).score for sample in samples])
    others = [alone, evaluator.compute(samples[::-1]).score[::-1]]
    for name, limit in limits.items():
        monkeypatch.setattr(f"ssrem.evaluators.{name}", limit)
    torch.set_num_threads(threads + 1)
    try:
        others.append(evaluator.compute(samples).score)
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)
    for scores in others:
        assert np.abs(scores - together.score).max() < 1e-5
    assert np.ptp(together.score) > 0.1


def changed(settings: Any, **values: Any) -> Any:
    """The settings with other values."""
    return settings.model_copy(update=values)


def one_set(
    pairs: Sequence[tuple[Sample, float]], scale: tuple[float, float] = (1.0, 5.0)
) -> dict[str, Labels]:
    """The human scores as an annotated set."""
    return {"set": Labels(tuple(pairs), scale, "overall", 0)}
