"""Other turns as negatives: those of other people, or the speaker's own from one of three sets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import ClassVar

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Case, Generator, Negative, Settings, letters
from ssrem.samples import Candidates


class SpeakerSet(Generator):
    """The first `count` turns that the speaker tables drew for a response and that pass the check.

    The draw was seeded when the tables were built; the seed passed to `generate` changes nothing.
    """

    kind: ClassVar[str]
    """The kind of drawn candidates, one of ssrem.samples.KINDS."""
    source: ClassVar[str] = "Bak and Oh 2020, section 3.2"

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings)
        if self.settings.count > 1:
            self.name = f"{self.name}-{self.settings.count}"

    def check(self, candidates: Candidates) -> None:
        drawn = candidates.negatives[self.kind].shape[1] if self.kind in candidates.negatives else 0
        if drawn < self.settings.count:
            raise EvaluatorError(
                f"{self.name}: the candidates have {drawn} {self.kind} turns a response; "
                f"draw {self.settings.count} or more when the speaker tables are built"
            )

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        rows = case.candidates.negatives[self.kind][case.row]
        texts = (case.candidates.texts[int(row)] for row in rows if row >= 0)
        words = len(case.response.split())
        distinct: dict[str, str] = {}
        for text in filter(case.admits, texts):
            distinct.setdefault(letters(text), text)
        for k, text in enumerate(islice(distinct.values(), self.settings.count)):
            yield Negative(case.row, self.name, k, text, words, words)


class Random(SpeakerSet):
    """Turns of anyone else."""

    name = "random"
    kind: ClassVar[str] = "Rand"
    source: ClassVar[str] = "Tao et al. 2018"

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings)
        self.name = f"random-{self.settings.count}"


class SameConversation(SpeakerSet):
    """The speaker's other turns in the same conversation."""

    name = "sc"
    kind: ClassVar[str] = "SC"


class SamePartner(SpeakerSet):
    """The speaker's turns towards the same partner."""

    name = "sp"
    kind: ClassVar[str] = "SP"


class SameSpeaker(SpeakerSet):
    """All of the speaker's turns."""

    name = "ss"
    kind: ClassVar[str] = "SS"


KIND_OF = {
    generator.name: generator.kind for generator in (Random, SameConversation, SamePartner, SameSpeaker)
}
"""Generator → the kind of drawn candidates that it uses."""
