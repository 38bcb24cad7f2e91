"""SSREM over a sentence encoder that learns with M through low-rank adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ssrem.encoders.base import Encoder
from ssrem.encoders.hub import MINILM
from ssrem.encoders.transformer import AdaptedTransformer, Transformer
from ssrem.evaluators.bilinear.config import RUN, AdapterConfig
from ssrem.evaluators.bilinear.table import SSREM
from ssrem.samples import TRAIN, VALID, Candidates, Rows

if TYPE_CHECKING:
    from ssrem.evaluators.bilinear.objective import VectorObjective
    from ssrem.training.trainer import Curve, Plan


class SSREMMiniLM(SSREM):
    """The form of `ssrem`, where V is a sentence encoder's: its upper layers learn through low-rank adapters.

    M starts as the identity. A response is told from all other texts of a batch, among them drawn negatives and copied
    turns. Afterwards the adapters and M go back towards the start as far as the validation split allows, see
    `AdapterConfig.keep`. g compares with the encoder as it was before learning.
    """

    name: ClassVar[str] = "ssrem-minilm"
    config_class: ClassVar[type[Any]] = AdapterConfig
    form: ClassVar[str] = "ssrem-adapters-1"
    default_encoder: ClassVar[str | None] = MINILM
    unfit: ClassVar[str] = (
        "learns adapters of a transformer, and {} is none: give --encoder all-minilm-l6-v2, hf:NAME or a model's "
        "folder, or train ssrem, which learns a table"
    )
    steps_a_state: ClassVar[int | None] = 20
    config: AdapterConfig  # type: ignore[assignment]

    @staticmethod
    def _encoders() -> tuple[type[Encoder], type[Encoder]]:
        return Transformer, AdaptedTransformer

    def _usable(self, candidates: Candidates, wanted: Rows) -> dict[int, Rows]:
        """Of the validation split, runs of responses drawn from the seed."""
        usable = super()._usable(candidates, wanted)
        starts = np.arange(0, len(usable[VALID]), RUN)
        drawn = np.random.default_rng([self.config.seed, 7]).permutation(starts)
        chosen = np.sort(drawn[: -(-self.config.valid_responses // RUN)])
        usable[VALID] = np.concatenate([usable[VALID][start : start + RUN] for start in chosen.tolist()])
        return usable

    def _objective(self, candidates: Candidates, wanted: Rows, usable: Mapping[int, Rows]) -> VectorObjective:
        from ssrem.evaluators.bilinear.adapter_training import AdapterObjective

        assert isinstance(self.start, Transformer)
        return AdapterObjective(self.start, candidates, wanted, usable, self.config)

    def _plan(self) -> Plan:
        from ssrem.training.trainer import Plan

        settings = self.config
        return Plan(
            settings.epochs,
            settings.seed,
            patience=settings.patience,
            from_0=True,
            warmup=0.05,
            one_thread=False,
        )

    def _share(self, objective: VectorObjective, curve: Curve) -> tuple[float, list[str]]:
        from ssrem.evaluators.bilinear.adapter_training import AdapterObjective

        assert isinstance(objective, AdapterObjective)
        start, best = curve.history[0], curve.best
        share, reached = objective.chosen_share(start["valid_gt_above"], best["valid_gt_above"])
        count = min(self.config.responses, len(objective.rows[TRAIN]))
        notes = [
            f"learned from {curve.best_epoch * count:,} responses; {share:.0%} of the way from the start. Negatives "
            f"that the true response outranks on validation: {start['valid_gt_above']:.3f} before, "
            f"{best['valid_gt_above']:.3f} with all that was learned, {reached:.3f} with this share"
        ]
        return share, notes
