"""Generators that need no model, the registry, and the check that every negative passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from ssrem.errors import EvaluatorError
from ssrem.negatives import GENERATORS, load_generator, needs_model
from ssrem.negatives.base import Case, Generator, Negative
from ssrem.samples import TRAIN, VALID, Candidates

TEXTS = [
    "shall we go out tonight",  # 0 a context
    "yes I would love to see a film",  # 1 its response
    "Shall we  go out TONIGHT",  # 2 the context again, in other letters
    "my cat sleeps all day long",  # 3
    "YES I would love to see a film ",  # 4 the response again
    "we could cook dinner at home",  # 5
    "ha ha ha",  # 6 a response whose every order is the same
    "no",  # 7 too short
]


def candidates() -> Candidates:
    """Responses at 1, 6, 7 and 5; the first draws what it may not have."""
    return Candidates(
        texts=TEXTS,
        response=np.array([1, 6, 7, 5]),
        context_start=np.array([0, 5, 5, 3]),
        context_stop=np.array([1, 6, 6, 5]),
        negatives={
            "Rand": np.array([[2, 3, 4, 5], [3, 3, 0, -1], [3, 1, 0, 5], [0, 1, 2, 7]]),
            "SC": np.array([[3, 5], [-1, 3], [-1, -1], [7, 0]]),
        },
        split=np.zeros(4, dtype=np.uint8),
    )


def negatives(generator: Generator, rows: Iterable[int] | None = None, **how: int) -> list[Negative]:
    batches = generator.generate(candidates(), rows, **{"seed": 0, **how})
    return [negative for batch in batches for negative in batch]


def test_random_hands_on_the_first_drawn_turns_that_are_no_copy() -> None:
    generated = negatives(load_generator("random-2"))
    # Of the first, 2 is the context and 4 the response, in other letters; of the second, 3 was drawn twice and is
    # handed on once; of the last, 1 is the context and 2 is 0 again, in other letters.
    turns = [TEXTS.index(n.text) for n in generated]
    assert turns == [3, 5, 3, 0, 3, 1, 0, 7]
    assert [(n.response, n.k) for n in generated] == [(row, k) for row in range(4) for k in range(2)]
    assert {n.generator for n in generated} == {"random-2"}
    assert (generated[0].replaced, generated[0].tokens) == (8, 8)
    sets = [(n.response, n.text) for n in negatives(load_generator("sc"))]  # skips what was not drawn
    assert sets == [(0, TEXTS[3]), (1, TEXTS[3]), (3, TEXTS[7])]


def test_missing_draws_are_named_before_the_first_batch() -> None:
    for spec, rows, message in (
        ("sp", None, r"sp: the speaker tables have 0 turns of SP for a response$"),
        ("random-5+drop-golden", None, r"random-5: .* have 4 turns of Rand .*; use random-4$"),
        ("sc", [4], "outside the 4 responses"),
    ):
        with pytest.raises(EvaluatorError, match=message):
            load_generator(spec).generate(candidates(), rows, seed=0)


def test_drop_golden_keeps_the_order_and_shuffle_golden_moves_words() -> None:
    generated = [n for n in negatives(load_generator("drop-golden", count=20)) if n.response == 0]
    assert len(generated) == 20 and len({n.text for n in generated}) > 3
    for negative in generated:
        left, rest = negative.text.split(), iter(TEXTS[1].split())
        assert len(left) == 6 and negative.replaced == 2 and negative.tokens == 8  # 0.2728 * 8 = 2.2
        assert all(word in rest for word in left)
    generated = negatives(load_generator("shuffle-golden"))
    assert [n.response for n in generated] == [0, 3]
    for negative, response in zip(generated, (TEXTS[1], TEXTS[5]), strict=True):
        assert negative.text != response and sorted(negative.text.split()) == sorted(response.split())
        moved = sum(a != b for a, b in zip(negative.text.split(), response.split(), strict=True))
        assert negative.replaced == moved > 0


@pytest.mark.parametrize("spec", ["drop-golden-3", "shuffle-golden", "random-1+shuffle-golden-2"])
def test_a_draw_depends_on_seed_response_and_k_alone(spec: str) -> None:
    generator = load_generator(spec)
    whole = negatives(generator)
    assert negatives(generator, batch_size=1) == whole
    assert sorted(negatives(generator, [3, 2, 1, 0]), key=lambda n: n.response) == whole
    assert negatives(generator, [3]) == [n for n in whole if n.response == 3]
    assert negatives(generator, seed=1) != whole
    five = negatives(load_generator("drop-golden-5"))
    assert negatives(load_generator("drop-golden-2")) == [n for n in five if n.k < 2]


def test_a_draw_stays_when_responses_land_before_it() -> None:
    one = candidates()
    columns = ((1, one.response), (0, one.context_start), (1, one.context_stop))
    shifted = [np.concatenate([[first], column + 2]) for first, column in columns]
    later = Candidates(["new", "turns here", *TEXTS], *shifted, {}, np.zeros(5, dtype=np.uint8))
    generator = load_generator("shuffle-golden")
    after = [n for batch in generator.generate(later, [1, 2, 3, 4], seed=0) for n in batch]
    assert [replace(n, response=n.response - 1) for n in after] == negatives(generator)


class Careless(Generator):
    """Offers all that is forbidden, and one text that is not."""

    name, source, signature = "careless", "", ""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        self.rows.append(case.row)
        for text in ("", " \n", "yesIwould LOVE to see a film", "shall we go out to night", "fine"):
            yield Negative(case.row, self.name, 0, text, 1, 1)


def test_no_negative_is_blank_the_response_or_the_context_and_batches_are_made_when_asked_for() -> None:
    careless = Careless()
    assert [n.text for n in negatives(careless, [0])] == ["fine"]
    careless.rows.clear()
    assert len(next(careless.generate(candidates(), seed=0, batch_size=2))) == 1 + 3
    assert careless.rows == [0, 1]


def test_a_mixture_is_its_parts_one_after_the_other() -> None:
    mixed = negatives(load_generator("random-1+drop-golden", share=0.5))
    assert [(n.response, n.generator) for n in mixed][:2] == [(0, "random-1"), (0, "drop-golden")]
    parts = negatives(load_generator("random-1")) + negatives(load_generator("drop-golden", share=0.5))
    assert sorted(mixed, key=repr) == sorted(parts, key=repr)
    signature = load_generator("random-1+drop-golden").signature
    assert signature.startswith("random-1|count:1+drop-golden|count:1|")


def test_bad_specs_and_settings_say_the_way_out() -> None:
    for spec, settings, message in (
        ("mask-and-fil", {}, "did you mean mask-and-fill"),
        ("randm-2", {}, "did you mean random"),
        ("random-1+shufle-golden", {}, "did you mean shuffle-golden"),
        ("", {}, "there are random, "),
        ("sc+sc-1", {}, "sc is named twice"),
        ("random-1+random-2", {}, "random is named twice; name it once, as random-2"),
        ("drop-golden", {"shar": 0.2}, "no setting 'shar'; did you mean share"),
        ("random-0", {}, "random: count: .* not 0"),
        ("mask-and-fill", {}, "needs a masked language model"),
        ("mask-and-fill-2", {"model": "m"}, "draws nothing"),
        ("select-random", {"model": "m", "select": "context"}, "leave select out"),
        ("mask-and-fill", {"model": "m", "max_tokens": 60}, "expected 67 or more"),
    ):
        with pytest.raises(EvaluatorError, match=message) as raised:
            load_generator(spec, **settings)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_registered_name_loads_its_generator_and_takes_a_place_in_a_mixture(name: str) -> None:
    settings = {"model": "none"} if needs_model(name) else {}
    generator = load_generator(name, **settings)
    assert generator.name.startswith(name) and generator.source and type(generator).__doc__
    other = "sc-2" if name == "random" else "random-3"
    assert load_generator(f"{name}+{other}", **settings).name == f"{generator.name}+{other}"


def drawn(spec: str, rows: Iterable[int] | None = None, second: int = TRAIN) -> dict[int, str]:
    """From two conversations, the second one in the split `second`: responses at 1, 2, 3 and at 5, 6, 7, 8; texts 0, 2
    and 5 ask."""
    texts = ["where?", "here", "why?", "so", "yes", "who?", "me", "yes", "Yes "]
    at, start = np.array([1, 2, 3, 5, 6, 7, 8]), np.array([0, 0, 0, 4, 4, 4, 4])
    two = Candidates(texts, at, start, at, {}, np.where(start > 0, second, TRAIN).astype(np.uint8))
    batches = load_generator(spec).generate(two, rows, seed=0)
    return {negative.response: negative.text for batch in batches for negative in batch}


def test_copied_own_generic_and_other_question() -> None:
    assert drawn("copied") == {0: "where?", 1: "here", 2: "why?", 3: "yes", 4: "who?", 5: "me"}
    with pytest.raises(EvaluatorError, match="copied has one negative for a response, not 3"):
        drawn("copied-3")
    # The first response has no turn before the last one; the own turn of the last is the response itself.
    assert drawn("own") == {1: "where?", 2: "here", 4: "yes", 5: "who?", 6: "me"}
    # "yes" is the only response that occurs more than once; it is in the other conversation.
    assert drawn("generic") == {0: "yes", 1: "yes", 2: "yes"}
    generated = drawn("other-question")
    assert set(generated) == {0, 2, 4}
    assert all(text in {"here", "so", "me"} for text in generated.values())
    assert generated[0] != "here" and generated[2] not in {"so", "here"} and generated[4] != "me"
    # What is drawn is of the response's split.
    assert drawn("generic", second=VALID) == {}
    assert drawn("other-question", second=VALID) == {0: "so"}
