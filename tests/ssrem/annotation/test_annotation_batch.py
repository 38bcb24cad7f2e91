"""A batch for raters: balanced, blind, the same by seed, and read back without a change."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from math import log
from random import Random

import pytest

from ssrem.annotation.batch import (
    EDGES,
    Batch,
    BatchPlan,
    Bm25,
    Context,
    contexts_needed,
    draw_batch,
    gibberish,
    instructed,
    length_balanced,
)
from ssrem.annotation.sheets import as_csv, as_jsonl, raters_view, render
from ssrem.errors import AnnotationError
from ssrem.samples import context_key


def context(number: int, words: int, said: str | None = None) -> Context:
    turns = (("A", said or f"question {number}"), ("B", "go on"))
    return Context(number, turns, "A", " ".join([f"word{number}"] * words))


def batch_of(plan: BatchPlan) -> Batch:
    contexts = [context(number, 3 + number % 5) for number in range(contexts_needed(plan))]
    rated = contexts[: plan.contexts]
    said = {"bot<1>": [f"bot {c.response_id}" for c in rated], "echo": [c.truth for c in rated]}
    return draw_batch("corpus", "test", plan, contexts, said)


PLANS = [
    BatchPlan(contexts=12, raters=3, redundancy=3, checks=4),
    BatchPlan(contexts=11, raters=5, redundancy=2, checks=3, seed=7),
    BatchPlan(contexts=4, raters=1, redundancy=1, checks=0),
]


@pytest.mark.parametrize("plan", PLANS)
def test_every_response_and_check_has_as_many_raters_and_sheets_are_as_long(plan: BatchPlan) -> None:
    batch = batch_of(plan)
    seen = Counter(item for sheet in batch.sheets.values() for item in sheet)
    assert seen == dict.fromkeys((item.id for item in batch.items), plan.redundancy)
    assert all(len(set(sheet)) == len(sheet) for sheet in batch.sheets.values())
    checks = {item.id for item in batch.items if item.expected}
    assert len(batch.items) - len(checks) == 2 * plan.contexts  # equal responses are one item
    rated = [len(set(sheet) - checks) for sheet in batch.sheets.values()]
    met = [len(set(sheet) & checks) for sheet in batch.sheets.values()]
    assert max(rated) - min(rated) <= 2  # one context more, with its two responses
    assert plan.checks <= min(met) and max(met) <= plan.checks + 1


def test_equal_responses_are_one_item_and_the_same_seed_draws_the_same() -> None:
    batch = batch_of(PLANS[0])
    systems = Counter(item.systems for item in batch.items if not item.expected)
    assert systems == {("ground-truth", "echo"): 12, ("bot<1>",): 12}
    assert batch == batch_of(PLANS[0])
    assert batch.id != batch_of(PLANS[0].model_copy(update={"seed": 1})).id
    batch = batch_of(BatchPlan(contexts=40, checks=4))
    checks = {item.id for item in batch.items if item.expected}
    for sheet in batch.sheets.values():  # over which checks are spread
        at = [place for place, item in enumerate(sheet) if item in checks]
        assert [place * 4 // len(sheet) for place in at] == [0, 1, 2, 3]


def test_the_page_tells_neither_systems_nor_checks() -> None:
    batch = batch_of(PLANS[1])
    hidden = ("bot<1>", "bot\\u003c1>", "ground-truth", "echo", "expected", "systems", "bm25")
    for text in (render(batch), as_jsonl(batch), *(as_csv(batch, rater) for rater in batch.sheets)):
        assert not [word for word in hidden if word in text]
    fields = {frozenset(item) for item in raters_view(batch)["items"].values()}
    assert fields == {frozenset({"turns", "responder", "response"})}  # a check has what the others have


def test_what_people_wrote_ends_no_script_and_is_no_formula() -> None:
    plan = BatchPlan(contexts=1, checks=0)
    batch = draw_batch("c", "test", plan, [context(0, 1, "</script><b>")], {"x": ['=cmd("a")']})
    html = render(batch)
    assert "</script><b>" not in html and html.count("</script>") == 2
    rows = csv.DictReader(io.StringIO(as_csv(batch, "rater-1")))
    assert {row["response"][0] for row in rows} == {"'", "w"}


def test_lengths_are_balanced_and_no_context_comes_twice() -> None:
    lengths = [2] * 60 + [6] * 20 + [12] * 20 + [30] * 3
    candidates = [context(number, words) for number, words in enumerate(lengths)]
    chosen = length_balanced([*candidates, *candidates], 19)
    bands = Counter(sum(len(c.truth.split()) > edge for edge in EDGES) for c in chosen)
    assert bands == {0: 6, 1: 5, 2: 5, 3: 3}
    assert len({c.response_id for c in chosen}) == 19
    again = length_balanced(candidates, 19, within={context_key(c.texts) for c in chosen})
    assert again == chosen  # a system that answered just these gets these
    with pytest.raises(AnnotationError, match=r"3 contexts are needed, .* there are 2 that every file"):
        length_balanced(candidates, 3, within={context_key(c.texts) for c in chosen[:2]})


def test_checks_have_a_known_score_and_a_key_is_read_back() -> None:
    for seed in range(30):
        text, (low, high) = instructed(Random(seed), 5)
        assert 4 <= low == high <= 5 and f"choose {low}." in text
        text, expected = gibberish(Random(seed), "We had a nice dinner there", 5)
        assert expected == (1, 2) and text != "we had a nice dinner there"
        assert sorted(text.replace(" ", "")) == sorted("wehadanicedinnerthere")
        assert len(gibberish(Random(seed), "ok 👍", 5)[0].replace(" ", "")) == 12
    batch = batch_of(PLANS[1])
    text = batch.as_json()
    assert Batch.from_json(text, "key.json") == batch
    with pytest.raises(AnnotationError, match="was changed"):
        Batch.from_json(text.replace('"echo"', '"other"'), "key.json")
    for bad in ("{", "[]", "{}", json.dumps({"format": "x"})):
        with pytest.raises(AnnotationError, match="is no key of a batch"):
            Batch.from_json(bad, "key.json")


def test_bm25_finds_the_reply_to_the_most_similar_context() -> None:
    contexts = ["do you like pizza", "do you like the guitar", "???", "the guitar and the piano the guitar"]
    chosen = Bm25(contexts, ["yum", "strings", "what", "keys"])
    asked = {"pizza tonight?": "yum", "Piano!": "keys", "zebra": None}
    assert {text: chosen.respond(text) for text in asked} == asked
    # By hand, Lucene's formula: the word is in 2 of 4 documents of lengths 4, 5, 1, 7 (a context without words has 1).
    idf, mean = log(1 + 2.5 / 2.5), 17 / 4
    weight = [idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * n / mean)) for tf, n in ((1, 5), (2, 7))]
    assert chosen._index.get_scores(["guitar"]) == pytest.approx([0, weight[0], 0, weight[1]], rel=1e-5)
