"""Other turns as negatives: anyone's, or the speaker's own from one of their three sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import ClassVar

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Case, Generator, Negative, Settings, letters, signature_of
from ssrem.samples import Candidates

KIND_OF = {"random": "Rand", "sc": "SC", "sp": "SP", "ss": "SS"}
"""Generator → the kind of drawn candidates that it hands on."""


class SpeakerSet(Generator):
    """The first `count` turns that the speaker tables drew for a response and that pass the check.

    random: turns of anyone else. sc, sp, ss: the speaker's turns in the same conversation, towards the same
    partner, all of them. The tables' seed has made the draw; the seed given to `generate` changes nothing.
    """

    source: ClassVar[str] = "random: Tao et al. 2018; sc, sp, ss: Bak and Oh 2020, section 3.2"

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = f"{name}-{settings.count}" if name == "random" or settings.count > 1 else name
        self.kind = KIND_OF[name]
        self.settings = settings

    @property
    def signature(self) -> str:
        return signature_of(self.name, asdict(self.settings))

    def check(self, candidates: Candidates) -> None:
        drawn = candidates.negatives[self.kind].shape[1] if self.kind in candidates.negatives else 0
        if drawn < self.settings.count:
            raise EvaluatorError(
                f"{self.name}: the candidates hold {drawn} {self.kind} turns a response; "
                f"draw {self.settings.count} or more when the speaker tables are built"
            )

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        rows = case.candidates.negatives[self.kind][case.row]
        texts = [case.candidates.texts[int(row)] for row in rows if row >= 0]
        words = len(case.response.split())
        admitted: dict[str, str] = {}
        for text in texts:
            if case.admits(text):
                admitted.setdefault(letters(text), text)
        for k, text in enumerate(list(admitted.values())[: self.settings.count]):
            yield Negative(case.row, self.name, k, text, words, words)
