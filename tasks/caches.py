"""What a home folder keeps so that it is computed only once: encoders and language models that were trained on its
corpora, and encoded texts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from ssrem.encoders import DEFAULT_ENCODER, load_encoder, load_saved
from ssrem.encoders.store import VectorStore
from ssrem.errors import EvaluatorError, say
from ssrem.files import sha256, write_json
from ssrem.registry import object_at
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.warehouse.files import folder_damage, whole_folder
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.encoders.base import Vectors
    from ssrem.evaluators.base import Evaluator
    from ssrem.samples import Candidates

LANGUAGE_MODELS = {
    "masked-lm": "ssrem.negatives.tied_head:TiedHead",
    "lm": "ssrem.evaluators.language_model.fine_tune:LmObjective",
}
"""Name of a language model that is fine-tuned here → import path of its training objective, a `ResponseObjective`."""

_MANIFEST = "manifest.json"
"""File in the folder of a kept model that lists the digests of the other files."""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def encoder_for(
    home: Warehouse, spec: str, seed: int, corpora: dict[str, str], texts: Callable[[], Sequence[str]]
) -> Encoder:
    """The encoder that `spec` names; one that learns from the corpora is trained once and cached under `encoders/`.

    corpora: corpus → content hash. texts: returns the turns of their training splits; called only to train.
    """
    if "word2vec" not in (part.partition(":")[0] for part in spec.split("+")):
        return load_encoder(spec, seed=seed)
    folder = home.root / "encoders" / _digest(json.dumps([spec, seed, corpora], sort_keys=True))
    with suppress(EvaluatorError):  # damaged, or written by another version: it is trained again
        if (folder / "encoder.json").exists():
            return load_saved(folder)
    train_texts = texts()
    say(
        f"the encoder {spec} is trained first, on {len(train_texts):,} turns of {', '.join(corpora)}; "
        f"the default, {DEFAULT_ENCODER}, needs no training"
    )
    with progress("training word2vec"):
        encoder = load_encoder(spec, train_texts=train_texts, seed=seed)
    with whole_folder(folder) as draft:
        encoder.save(draft)
    return encoder


def training_texts(connection: duckdb.DuckDBPyConnection, corpora: Sequence[str]) -> list[str]:
    """Texts of the turns in the training splits of the corpora, ordered by corpus and turn_id."""
    query = (
        "SELECT text FROM turns WHERE list_contains(?, corpus) AND split = 'train' ORDER BY corpus, turn_id"
    )
    return [text for (text,) in connection.execute(query, [list(corpora)]).fetchall()]


def settings_of(name: str, values: Mapping[str, Any]) -> Any:
    """Settings for fine-tuning the language model `name`; SsremError for an unknown setting or an invalid value."""
    return object_at(LANGUAGE_MODELS[name]).settings_model(**values)


def language_model_for(
    home: Warehouse, name: str, candidates: Candidates, corpora: Mapping[str, str], settings: Any
) -> Path:
    """Folder of the language model fine-tuned on the corpora (name → content hash) with the settings.

    It is fine-tuned once and kept in the home folder; an interrupted training is resumed.
    """
    folder = home.root / name / _digest(json.dumps([settings.model_dump(), corpora], sort_keys=True))
    unfinished = home.root / "checkpoints" / f"{name}-{folder.name}"
    if folder_damage(folder, _MANIFEST, deep=True):
        from ssrem.training.fine_tuning import fine_tune

        with progress(f"training {name}") as advance, whole_folder(folder) as draft:
            objective = object_at(LANGUAGE_MODELS[name])(candidates, settings)
            fine_tune(objective, draft, progress=advance, checkpoint=unfinished)
            digests = {path.name: sha256(path) for path in sorted(draft.iterdir())}
            write_json(draft / _MANIFEST, {"sha256": digests})
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def masked_lm_for(home: Warehouse, candidates: Candidates, corpora: Mapping[str, str]) -> Path:
    """Folder of the packaged encoder fine-tuned as a masked language model with the default settings."""
    return language_model_for(home, "masked-lm", candidates, corpora, settings_of("masked-lm", {}))


def cached_encode(home: Warehouse, encoder: Encoder) -> Callable[[Sequence[str]], Vectors]:
    """The function `encoder.compute` or, if the encoder is slow, the same with the home folder's cache of vectors."""
    return partial(VectorStore(home.vectors).encode, encoder) if encoder.slow else encoder.compute


@contextmanager
def cached_vectors(home: Warehouse, evaluator: Evaluator) -> Iterator[None]:
    """Until the block ends, let the evaluator's encoder, if it has one, use the home folder's cache of vectors."""
    encoder = evaluator.encoder
    if encoder is None:
        yield
        return
    encoder.cache = cached_encode(home, encoder)
    try:
        yield
    finally:
        encoder.cache = None
