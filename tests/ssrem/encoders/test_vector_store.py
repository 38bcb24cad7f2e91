"""The cache of vectors: exact, complete, never twice, healing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from ssrem.encoders import store as store_module
from ssrem.encoders.store import VectorStore, text_hashes
from ssrem.encoders.words import WordAverage
from ssrem.errors import HomeError


class Counting(WordAverage):
    """Notes every text that it is asked to encode."""

    seen: list[str]

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        self.seen.extend(texts)
        return super()._encode(texts)


@pytest.fixture
def encoder() -> Counting:
    generator = np.random.default_rng(0)
    encoder = Counting("counting", [f"w{number}" for number in range(40)], generator.normal(size=(40, 6)))
    encoder.seen = []
    return encoder


TEXTS = [f"w{number % 17} w{number % 5} w{number % 3}" for number in range(120)] + ["", "unknown"]


@pytest.mark.parametrize("chunk", [20, 1000])
def test_equals_the_encoder_and_encodes_nothing_twice(
    encoder: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(store_module, "_ENCODE_CHUNK", chunk)
    store, expected = VectorStore(tmp_path), encoder.encode(TEXTS)
    encoder.seen.clear()
    assert np.array_equal(store.encode(encoder, TEXTS[:70]), expected[:70])
    assert np.array_equal(store.encode(encoder, TEXTS), expected)
    assert np.array_equal(store.encode(encoder, TEXTS[::-1]), expected[::-1])
    assert len(encoder.seen) == len(set(TEXTS))
    assert store.encode(encoder, []).shape == (0, 6)


def test_another_encoder_has_its_own_vectors_and_a_text_its_hash(encoder: Counting, tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.encode(encoder, ["w1"])
    other = WordAverage("counting", encoder.vocabulary, encoder.vectors * 2)
    assert np.array_equal(store.encode(other, ["w1"]), other.encode(["w1"]))
    assert {path.name for path in tmp_path.iterdir()} == {encoder.signature, other.signature}
    hashes = text_hashes(["a", "b", "", "a", "\ud800"])
    assert hashes.dtype == np.uint64 and hashes[0] == hashes[3] and len(set(hashes.tolist())) == 4


def test_a_damaged_part_is_removed_and_made_again(encoder: Counting, tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    expected = store.encode(encoder, TEXTS)
    for damage in ("cut", "flip", "foreign"):
        (part,) = (tmp_path / encoder.signature).glob("*.parquet")
        content = bytearray(part.read_bytes())
        content[len(content) // 3] ^= 0xFF
        cut = part.read_bytes()[: len(content) // 2]
        part.write_bytes({"cut": cut, "flip": content, "foreign": b"not parquet"}[damage])
        encoder.seen.clear()
        for _ in range(2):
            assert np.array_equal(store.encode(encoder, TEXTS), expected)
            assert len(encoder.seen) == len(set(TEXTS))


def test_no_half_written_part_stays(encoder: Counting, tmp_path: Path) -> None:
    def full(table: object, path: Path, **options: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        with pytest.raises(HomeError, match="No space left"):
            VectorStore(tmp_path).encode(encoder, ["w1"])
    assert list((tmp_path / encoder.signature).iterdir()) == []
    assert VectorStore(tmp_path).encode(encoder, ["w1"]).any()


def test_other_texts_are_not_read(encoder: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, read, columns = VectorStore(tmp_path), pq.ParquetFile.read, list[str]()
    store.encode(encoder, ["w1"])

    def noted(file: Any, names: list[str]) -> Any:
        columns.extend(names)
        return read(file, names)

    monkeypatch.setattr(pq.ParquetFile, "read", noted)
    store.encode(encoder, ["w2"])
    assert columns == ["text_hash"]
    store.encode(encoder, ["w2"])
    assert columns.count("vector") == 1
