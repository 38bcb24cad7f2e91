"""The evaluators that come with the package."""

from __future__ import annotations

import pytest

from ssrem.evaluators import PACKAGED, load_evaluator, packaged
from ssrem.extras import OF_GEMMA, OF_MPNET, not_installed
from ssrem.files import read_json
from ssrem.samples import Sample

CONTEXT = ("Hi, do you like movies?", "Yes, I love horror films.")
GOOD = Sample(CONTEXT, "Me too! Which horror film is your favorite?")
BAD = Sample(CONTEXT, "My car needs new brakes.")


def test_an_evaluator_comes_with_the_package() -> None:
    names = "blend blend-base blend-fast lm-sum retrieval ssrem ssrem-base ssrem-minilm"
    assert packaged() == names.split()
    for name in ("ssrem", "ssrem-minilm"):
        better, worse = load_evaluator(name).score([GOOD, BAD])
        assert better > worse, name


@pytest.mark.parametrize(
    ("name", "needs", "size"),
    [
        pytest.param("blend", (*OF_MPNET, *OF_GEMMA), 1_000_000, marks=pytest.mark.slow),  # 30 s to load
        ("blend-base", OF_MPNET, 1_000_000),
        ("ssrem-base", OF_MPNET, 4_000_000),
        ("retrieval", OF_MPNET, 6_000_000),
    ],
)
def test_it_is_small_and_judges_where_its_model_is_at_hand(
    name: str, needs: tuple[str, ...], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = PACKAGED / name
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < size
    assert read_json(folder / "card.json", ("corpora", "trained_at"))["evaluator"] == name
    if missing := not_installed(*needs):  # a model would be looked for on the hub
        pytest.skip(f"needs {', '.join(missing)}")
    for user in ("encoders.layers", "evaluators.cross_encoder_network"):  # rounding all weights takes 8 s
        monkeypatch.setattr(f"ssrem.{user}.use_int8", lambda model: None)
    better, worse = load_evaluator(name).score([GOOD, BAD])
    assert better > worse
