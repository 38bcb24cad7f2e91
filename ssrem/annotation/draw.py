"""Draws a batch: contexts balanced by length, the systems' responses, attention checks, and who rates which."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from random import Random

from ssrem.annotation.items import TRUE_SYSTEM, Batch, Context, Item, Plan
from ssrem.errors import AnnotationError
from ssrem.samples import context_key

Responses = Mapping[str, Sequence[str]]
"""System → its response to each context."""

EDGES = (4, 8, 16)
"""Bands of lengths: the most words of the true response in each but the last, which has no limit."""

INSTRUCTION = "This response checks that each one is read: please choose {}."
_LEAST_LETTERS = 12


def length_balanced(
    candidates: Iterable[Context], count: int, *, within: Collection[str] | None = None
) -> list[Context]:
    """Choose `count` distinct contexts, equally many of each band of lengths as far as the candidates allow.

    Raters' scores depend on length, so short and long responses should be equally frequent. candidates: in random
    order; the first of each band are chosen. within: keys of the contexts that may be chosen; None: all. The same
    candidates give the same list, and every prefix of it is balanced, too. AnnotationError if there are too few.
    """
    bands: list[list[Context]] = [[] for _ in range(len(EDGES) + 1)]
    seen: set[str] = set()
    for context in candidates:
        key = context_key(context.texts)
        if key in seen or (within is not None and key not in within):
            continue
        seen.add(key)
        band = bands[bisect_left(EDGES, len(context.truth.split()))]
        if len(band) < count:
            band.append(context)
    chosen = [context for row in zip_longest(*bands) for context in row if context is not None]
    if len(chosen) < count:
        answered = " that every file of responses answers" if within is not None else ""
        raise AnnotationError(
            f"{count} contexts are needed, attention checks included, and there are {len(chosen)}{answered}; "
            "ask for fewer with --contexts"
        )
    return chosen[:count]


def contexts_needed(plan: Plan) -> int:
    """Number of contexts to draw: first those to be rated, then one for each attention check."""
    return plan.contexts + _checks(plan)


def draw_batch(corpus: str, split: str, plan: Plan, contexts: Sequence[Context], systems: Responses) -> Batch:
    """The batch of `contexts_needed` contexts and the systems' responses to the first `plan.contexts` of them.

    The true responses count as a system. Equal responses to a context are rated once, for all systems that gave them.
    Each response and each check is on the sheets of `plan.redundancy` raters, so that neither number nor place of the
    checks gives them away. The same arguments give the same batch.
    """
    draw = Random(f"ssrem annotate {plan.seed}")
    rated, spare = contexts[: plan.contexts], contexts[plan.contexts :]
    by_system = {TRUE_SYSTEM: [context.truth for context in rated], **systems}
    groups = [_items(at, context, by_system) for at, context in enumerate(rated)]
    checks = [_check(draw, at, context, plan.scale) for at, context in enumerate(spare)]
    items = [item for group in groups for item in group] + checks
    order = list(range(len(items)))
    draw.shuffle(order)
    width = len(str(len(items)))
    names = {items[old].id: f"i{new:0{width}}" for new, old in enumerate(order, 1)}
    of_groups = _assigned(draw, len(groups), plan)
    of_checks = _assigned(draw, len(checks), plan)
    sheets = {}
    for rater in range(plan.raters):
        sheet = [item.id for at in of_groups[rater] for item in groups[at]]
        draw.shuffle(sheet)
        own = [checks[at].id for at in of_checks[rater]]
        draw.shuffle(own)
        order_shown = [names[one] for one in _spread(draw, sheet, own)]
        sheets[f"rater-{rater + 1:0{len(str(plan.raters))}}"] = tuple(order_shown)
    renamed = (
        Item(names[item.id], item.context, item.response, item.systems, item.expected)
        for item in (items[old] for old in order)
    )
    return Batch(corpus, split, plan, tuple(renamed), sheets)


def _checks(plan: Plan) -> int:
    """Number of checks in the batch: each is on several sheets; each sheet has `plan.checks` of them, or one more."""
    return -(-plan.checks * plan.raters // plan.redundancy)


def _items(at: int, context: Context, by_system: Responses) -> list[Item]:
    systems_by_text: dict[str, list[str]] = {}
    for system, responses in by_system.items():
        systems_by_text.setdefault(responses[at], []).append(system)
    return [
        Item(f"{at} {number}", context, text, tuple(names))
        for number, (text, names) in enumerate(systems_by_text.items())
    ]


def _check(draw: Random, at: int, context: Context, scale: int) -> Item:
    text, expected = instructed(draw, scale) if at % 2 else gibberish(draw, context.truth, scale)
    return Item(f"check {at}", context, text, (), expected)


def _assigned(draw: Random, units: int, plan: Plan) -> list[list[int]]:
    """The units of each rater: each unit goes to `plan.redundancy` raters, and all get about equally many."""
    of: list[list[int]] = [[] for _ in range(plan.raters)]
    order = list(range(units))
    draw.shuffle(order)
    for unit in order:
        least_busy = sorted(range(plan.raters), key=lambda rater: (len(of[rater]), draw.random()))
        for rater in least_busy[: plan.redundancy]:
            of[rater].append(unit)
    return of


def _spread(draw: Random, sheet: Sequence[str], checks: Sequence[str]) -> list[str]:
    """The sheet's items with the checks among them, one at random in each of equally long stretches."""
    shown = list(sheet)
    for number in reversed(range(len(checks))):
        low, high = (len(sheet) * edge // len(checks) for edge in (number, number + 1))
        shown.insert(draw.randint(low, max(low, high - 1)), checks[number])
    return shown


def instructed(draw: Random, scale: int) -> tuple[str, tuple[int, int]]:
    """A check that asks for a certain score above the middle, so that always choosing a low score fails.

    Returns its text, and the lowest and highest score that pass.
    """
    score = draw.randint((scale + 1) // 2 + 1, scale)
    return INSTRUCTION.format(score), (score, score)


def gibberish(draw: Random, text: str, scale: int) -> tuple[str, tuple[int, int]]:
    """A check of meaningless words as long as those of `text`, which only scores of the lower half pass.

    Letters are those of the text, shuffled, plus consonants if it has too few. Returns as `instructed`.
    """
    letters = [letter for letter in text.lower() if letter.isalpha()]
    letters += draw.choices("bdfgklmprtvz", k=max(0, _LEAST_LETTERS - len(letters)))
    draw.shuffle(letters)
    lengths = [len(word) for word in text.split()]
    nonsense: list[str] = []
    at = 0
    while at < len(letters):
        size = lengths[len(nonsense)] if len(nonsense) < len(lengths) else 5
        nonsense.append("".join(letters[at : at + size]))
        at += size
    return " ".join(nonsense), (1, max(1, scale // 2))
