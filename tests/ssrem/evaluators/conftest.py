"""Shared by the tests of evaluators with a transformer."""

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
