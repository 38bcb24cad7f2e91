"""A batch is drawn: contexts by systems, attention checks among them, and who rates which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from ssrem.annotation.attention import gibberish, instructed
from ssrem.annotation.items import TRUE_SYSTEM, Batch, Context, Item, Plan

Responses = Mapping[str, Sequence[str]]
"""System to its response to each context."""


def contexts_needed(plan: Plan) -> int:
    """Contexts to draw: those rated, then one for each attention check."""
    return plan.contexts + _checks(plan)


def draw_batch(corpus: str, split: str, plan: Plan, contexts: Sequence[Context], systems: Responses) -> Batch:
    """The batch of `contexts_needed` contexts and what each system responds to the first `plan.contexts` of them.

    The true responses are a system, too. Equal responses to a context are rated once, for all that gave them. Each
    response is on the sheets of `plan.redundancy` raters, and so is each check: where it lies does not betray it. The
    same arguments give the same batch.
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
        shown = [names[one] for one in _spread(draw, sheet, own)]
        sheets[f"rater-{rater + 1:0{len(str(plan.raters))}}"] = tuple(shown)
    renamed = (
        Item(names[item.id], item.context, item.response, item.systems, item.expected)
        for item in (items[old] for old in order)
    )
    return Batch(corpus, split, plan, tuple(renamed), sheets)


def _checks(plan: Plan) -> int:
    """Checks in all: each rater meets `plan.checks` of them or one more, each of which others meet, too."""
    return -(-plan.checks * plan.raters // plan.redundancy)


def _items(at: int, context: Context, by_system: Responses) -> list[Item]:
    said: dict[str, list[str]] = {}
    for system, responses in by_system.items():
        said.setdefault(responses[at], []).append(system)
    return [
        Item(f"{at} {number}", context, text, tuple(names))
        for number, (text, names) in enumerate(said.items())
    ]


def _check(draw: Random, at: int, context: Context, scale: int) -> Item:
    made = instructed(draw, scale) if at % 2 else gibberish(draw, context.truth, scale)
    return Item(f"check {at}", context, made[0], (), made[1])


def _assigned(draw: Random, units: int, plan: Plan) -> list[list[int]]:
    """For each rater the units that they rate: each unit by `plan.redundancy` of them, evenly."""
    of: list[list[int]] = [[] for _ in range(plan.raters)]
    order = list(range(units))
    draw.shuffle(order)
    for unit in order:
        least_busy = sorted(range(plan.raters), key=lambda rater: (len(of[rater]), draw.random()))
        for rater in least_busy[: plan.redundancy]:
            of[rater].append(unit)
    return of


def _spread(draw: Random, sheet: Sequence[str], checks: Sequence[str]) -> list[str]:
    """The checks among the sheet's items, one in each of equal stretches."""
    shown = list(sheet)
    for number in reversed(range(len(checks))):
        low, high = (len(sheet) * edge // len(checks) for edge in (number, number + 1))
        shown.insert(draw.randint(low, max(low, high - 1)), checks[number])
    return shown
