"""Scores candidates and samples in shards, in this process or on workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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
from ssrem.tasks.scoring.endpoint_requests import request_options_in
from ssrem.tasks.speaker_tables.vectors import encode_option
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.shards import (
    distributed,
    incoming,
    map_shards,
    room_for_shards,
    save_arrays,
    shard_ranges,
)
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.evaluators.base import Evaluator
    from ssrem.samples import Encode, Floats

SAMPLES = 1_000
"""Rated responses per shard."""


@contextmanager
def evaluator_at(folder: Path) -> Iterator[Any]:
    """The evaluator saved in a folder, loaded once for all shards of the block that run in this process."""
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
    """`evaluator.score_candidates` of the test split. folder: where the evaluator is saved."""
    rows = candidates.rows(TEST)
    pieces = shard_ranges(len(rows), evaluator.shard)
    if len(pieces) <= 1:
        f: dict[str, Floats] = evaluator.score_candidates(
            candidates, TEST, **encode_option(home, evaluator, scratch)
        )
        return f
    with room_for_shards(scratch) as room:
        shards = [room / str(number) for number in range(len(pieces))]
        for shard, (first, last) in zip(shards, pieces, strict=True):
            shard.mkdir()
            _write_candidates(shard, candidates.part(rows[first:last]))
        if evaluator.encoder is not None and evaluator.encoder.slow:
            _write_stored_vectors(home, evaluator.encoder, shards)
        arguments = [{"home": str(home.root), "evaluator": str(folder), "shard": str(s)} for s in shards]
        parts = [dict(np.load(file)) for file in map_shards(score_shard, arguments)]
        for shard in shards:
            VectorStore(home.vectors).adopt(shard / "new")
    return {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}


def score_samples(
    home: Warehouse,
    evaluators: Sequence[tuple[str, int]],
    samples: Sequence[Sample],
    what: str,
    scratch: Path,
) -> list[Scores]:
    """`components` of the samples by each evaluator (name, version), in their order. what: named by the progress bar.

    Two kinds run in this process, one after the other: evaluators with an encoder, which are fast once the texts are
    encoded and share the cache of vectors, and those that ask an endpoint, which wait for it and count what they spend.
    The others go to workers if there are any.
    """
    pieces = shard_ranges(len(samples), SAMPLES)
    scores: dict[int, Scores] = {}
    mapped: list[int] = []
    with room_for_shards(scratch) as room:
        shards = []
        for at, (name, version) in enumerate(evaluators):
            folder = home.models / name / str(version)
            if _in_one_process(name, folder) or (len(pieces) <= 1 and not distributed()):
                with (
                    progress(f"scoring {what} with {name}") as advance,
                    request_options_in(home, advance=advance),
                    evaluator_at(folder) as evaluator,
                ):
                    scores[at] = evaluator.components(samples, **encode_option(home, evaluator, scratch))
                continue
            mapped.append(at)
            for number, (first, last) in enumerate(pieces):
                file = room / f"{at}-{number}.json"
                file.write_text(json.dumps([asdict(one) for one in samples[first:last]]), encoding="utf-8")
                shards.append({"evaluator": str(folder), "samples": str(file)})
        names = ", ".join(evaluators[at][0] for at in mapped)
        with progress(f"scoring {what} with {names}") if shards else nullcontext(), request_options_in(home):
            parts = [dict(np.load(file)) for file in map_shards(components_shard, shards)]
        _loaded.cache_clear()
    for nth, at in enumerate(mapped):
        own = parts[nth * len(pieces) : (nth + 1) * len(pieces)]
        scores[at] = Scores(**{name: np.concatenate([part[name] for part in own]) for name in own[0]})
    return [scores[at] for at in range(len(evaluators))]


def _in_one_process(name: str, folder: Path) -> bool:
    kind = evaluator_class(name)
    return kind.asks_from(folder) or "encode" in signature(kind.compute).parameters


def score_shard(home: str, evaluator: str, shard: str) -> str:
    """Score the candidates in the shard's folder; returns the file of the scores by kind."""
    scorer: Any = _loaded(evaluator)
    folder = incoming(Path(shard))
    candidates = _read_candidates(folder)
    option = _encode_option(Path(home), scorer, folder, candidates.texts)
    return save_arrays(folder / "scores.npz", scorer.score_candidates(candidates, None, **option))


def components_shard(evaluator: str, samples: str) -> str:
    """Score a file of samples; returns the file of the parts of their scores."""
    scorer: Any = _loaded(evaluator)
    rows = json.loads(incoming(Path(samples)).read_text(encoding="utf-8"))
    scores: Scores = scorer.components([Sample(**{**row, "context": tuple(row["context"])}) for row in rows])
    arrays = {field.name: getattr(scores, field.name) for field in fields(Scores)}
    return save_arrays(Path(samples).with_suffix(".npz"), arrays)


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


def _write_stored_vectors(home: Warehouse, encoder: Encoder, folders: Sequence[Path]) -> None:
    """Write the cached vectors of each shard's texts beside them, so that no shard has to search the whole cache."""
    texts = [json.loads((folder / "texts.json").read_text(encoding="utf-8")) for folder in folders]
    vectors, cached = VectorStore(home.vectors).stored(encoder, [text for shard in texts for text in shard])
    first = 0
    for folder, shard in zip(folders, texts, strict=True):
        own = slice(first, first + len(shard))
        np.savez(folder / "vectors.npz", vectors=vectors[own].astype(np.float16), cached=cached[own])
        first += len(shard)


def _encode_option(home: Path, evaluator: Evaluator, folder: Path, texts: Sequence[str]) -> dict[str, Encode]:
    """`encode=` from the shard's vectors, then from the cache; new vectors are written to the shard's folder. Empty for
    an evaluator without an encoder, or with one that is not slow."""
    if (encoder := evaluator.encoder) is None or not encoder.slow:
        return {}
    store = VectorStore(Warehouse.at(home).vectors, into=folder / "new")
    known: dict[str, np.ndarray[Any, Any]] = {}
    if (file := folder / "vectors.npz").exists():
        saved = np.load(file)
        vectors = saved["vectors"]
        known = {texts[at]: vectors[at] for at in np.flatnonzero(saved["cached"]).tolist()}

    def encode(wanted: Sequence[str]) -> np.ndarray[Any, Any]:
        missing = list(dict.fromkeys(text for text in wanted if text not in known))
        if missing:
            known.update(zip(missing, store.encode(encoder, missing), strict=True))
        if not len(wanted):
            return store.encode(encoder, wanted)
        return np.stack([known[text] for text in wanted]).astype(np.float32)

    return {"encode": encode}
