"""Shared by the tests of evaluators: word vectors by hand, a tiny transformer, and one thread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from support.tiny_transformer import write_bert


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Torch on one thread: sums in the same order in every run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny BERT."""
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def colours(tmp_path: Path) -> str:
    """A spec of words in two dimensions."""
    path = tmp_path / "colours.txt"
    path.write_text("red 1 0\nblue 0 1\ngreen 3 4\ndark -2 1\ngrey 2 0\nthe .1 .2\ncat 1 -3\n")
    return f"file:{path}:uniform"
