"""What an evaluator gives of candidates and samples, some rows at a time: in this process or on workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, fields
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.encoders.store import VectorStore
from ssrem.evaluators import evaluator_class, load_evaluator
from ssrem.evaluators.base import Scores
from ssrem.samples import TEST, Candidates, Sample
from tasks.speaker_tables.vectors import encode_option
from tasks.stage.progress import progress
from tasks.stage.shards import (
    atomic_write,
    distributed,
    incoming,
    map_shards,
    room_for_shards,
    shard_ranges,
    shard_task,
)
from tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.evaluators.base import Evaluator
    from ssrem.samples import Encode, Floats

RESPONSES = 5_000
"""Responses of a shard, each with all of its candidates."""
SLOW_RESPONSES = 50
"""The same of evaluators that are slow enough to be scored on a sample."""
SAMPLES = 1_000
"""Annotated responses of a shard."""


@contextmanager
def evaluator_at(folder: Path) -> Iterator[Any]:
    """The evaluator saved in a folder, loaded once for all shards of the block that are worked on here."""
    try:
        yield _loaded(str(folder))
    finally:
        _loaded.cache_clear()


@lru_cache(maxsize=1)
def _loaded(folder: str) -> Evaluator:
    return load_evaluator(incoming(Path(folder)))


def score_candidates(
    home: Warehouse, folder: Path, evaluator: Any, candidates: Candidates, scratch: Path
) -> dict[str, Floats]:
    """`evaluator.score_candidates` of the test split, by the evaluator that lies in `folder`."""
    rows = candidates.rows(TEST)
    pieces = shard_ranges(len(rows), RESPONSES if evaluator.test_sample is None else SLOW_RESPONSES)
    if len(pieces) <= 1:
        found: dict[str, Floats] = evaluator.score_candidates(
            candidates, TEST, **encode_option(home, evaluator, scratch)
        )
        return found
    with room_for_shards(scratch) as room:
        places = [room / str(number) for number in range(len(pieces))]
        for place, (first, last) in zip(places, pieces, strict=True):
            place.mkdir()
            _write_candidates(place, candidates.part(rows[first:last]))
        if evaluator.encoder is not None:
            _write_known_vectors(home, evaluator.encoder, places)
        given = [{"home": str(home.root), "evaluator": str(folder), "shard": str(place)} for place in places]
        parts = [dict(np.load(file)) for file in map_shards(score_shard, given)]
        for place in places:
            VectorStore(home.vectors).adopt(place / "new")
    return {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}


def score_samples(
    home: Warehouse,
    evaluators: Sequence[tuple[str, int]],
    samples: Sequence[Sample],
    what: str,
    scratch: Path,
) -> list[Scores]:
    """`components` of the samples by each evaluator (name, version).

    Evaluators with an encoder are fast once the texts are encoded, and share the cache, so they stay here, one
    after the other; the others go to workers where there are some.
    """
    pieces = shard_ranges(len(samples), SAMPLES)
    found: dict[int, Scores] = {}
    elsewhere: list[int] = []
    with room_for_shards(scratch) as room:
        given = []
        for at, (name, version) in enumerate(evaluators):
            folder = home.models / name / str(version)
            if _encodes(name) or (len(pieces) <= 1 and not distributed()):
                with progress(f"scoring {what} with {name}"), evaluator_at(folder) as evaluator:
                    found[at] = evaluator.components(samples, **encode_option(home, evaluator, scratch))
                continue
            elsewhere.append(at)
            for number, (first, last) in enumerate(pieces):
                file = room / f"{at}-{number}.json"
                file.write_text(json.dumps([asdict(one) for one in samples[first:last]]), encoding="utf-8")
                given.append({"evaluator": str(folder), "samples": str(file)})
        names = ", ".join(evaluators[at][0] for at in elsewhere)
        with progress(f"scoring {what} with {names}") if given else nullcontext():
            parts = [dict(np.load(file)) for file in map_shards(components_shard, given)]
        _loaded.cache_clear()
    for nth, at in enumerate(elsewhere):
        mine = parts[nth * len(pieces) : (nth + 1) * len(pieces)]
        found[at] = Scores(**{part: np.concatenate([one[part] for one in mine]) for part in mine[0]})
    return [found[at] for at in range(len(evaluators))]


def _encodes(name: str) -> bool:
    return "encode" in signature(evaluator_class(name).components).parameters


@shard_task("score candidates")
def score_shard(home: str, evaluator: str, shard: str) -> str:
    """Score the candidates in the shard's folder; returns the file of the scores by kind."""
    scorer: Any = _loaded(evaluator)
    folder = incoming(Path(shard))
    candidates = _read_candidates(folder)
    option = _encode_option(Path(home), scorer, folder, candidates.texts)
    return _save(folder / "scores.npz", scorer.score_candidates(candidates, None, **option))


@shard_task("score samples")
def components_shard(evaluator: str, samples: str) -> str:
    """Score a file of samples; returns the file of the parts of their scores."""
    scorer: Any = _loaded(evaluator)
    rows = json.loads(incoming(Path(samples)).read_text(encoding="utf-8"))
    found: Scores = scorer.components([Sample(**{**row, "context": tuple(row["context"])}) for row in rows])
    parts = {field.name: getattr(found, field.name) for field in fields(Scores)}
    return _save(Path(samples).with_suffix(".npz"), parts)


def _save(path: Path, arrays: Mapping[str, Any]) -> str:
    with atomic_write(path) as aside, aside.open("wb") as stream:
        np.savez(stream, **arrays)
    return str(path)


def _write_candidates(folder: Path, part: Candidates) -> None:
    (folder / "texts.json").write_text(json.dumps(part.texts), encoding="utf-8")
    arrays: dict[str, Any] = {f"negatives {kind}": rows for kind, rows in part.negatives.items()}
    arrays |= {name: getattr(part, name) for name in ("response", "context_start", "context_stop", "split")}
    np.savez(folder / "candidates.npz", **arrays)


def _read_candidates(folder: Path) -> Candidates:
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    arrays = dict(np.load(folder / "candidates.npz"))
    negatives = {name.removeprefix("negatives "): arrays.pop(name) for name in list(arrays) if " " in name}
    return Candidates(texts=texts, negatives=negatives, **arrays)


def _write_known_vectors(home: Warehouse, encoder: Encoder, folders: Sequence[Path]) -> None:
    """Beside the texts of each shard their vectors that are stored, so that no shard reads through the whole store."""
    texts = [json.loads((folder / "texts.json").read_text(encoding="utf-8")) for folder in folders]
    vectors, there = VectorStore(home.vectors).stored(encoder, [text for shard in texts for text in shard])
    at = 0
    for folder, shard in zip(folders, texts, strict=True):
        here = slice(at, at + len(shard))
        np.savez(folder / "vectors.npz", vectors=vectors[here].astype(np.float16), there=there[here])
        at += len(shard)


def _encode_option(home: Path, evaluator: Evaluator, folder: Path, texts: Sequence[str]) -> dict[str, Encode]:
    """`encode=` that takes the vectors beside the shard first, then those stored; new ones stay in the folder."""
    if (encoder := evaluator.encoder) is None:
        return {}
    store = VectorStore(Warehouse.at(home).vectors, into=folder / "new")
    known: dict[str, np.ndarray[Any, Any]] = {}
    if (file := folder / "vectors.npz").exists():
        saved = np.load(file)
        vectors = saved["vectors"]
        known = {texts[at]: vectors[at] for at in np.flatnonzero(saved["there"]).tolist()}

    def encode(wanted: Sequence[str]) -> np.ndarray[Any, Any]:
        missing = list(dict.fromkeys(text for text in wanted if text not in known))
        if missing:
            known.update(zip(missing, store.encode(encoder, missing), strict=True))
        if not len(wanted):
            return store.encode(encoder, wanted)
        return np.stack([known[text] for text in wanted]).astype(np.float32)

    return {"encode": encode}
