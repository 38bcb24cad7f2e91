"""Stage `negatives`: negatives of a corpus by one generator; and the language models that are fine-tuned on landed
corpora and kept in the home folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.files import sha256, write_json
from ssrem.negatives import load_generator, needs_model
from ssrem.registry import registered
from ssrem.tables.candidates import SPLIT_CODES, load_candidates
from ssrem.tasks.settings import NegativeSettings, Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Output, Recipe, Stage, run_stage
from ssrem.tasks.tables.speaker_tables import candidate_sources
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.files import folder_damage, whole_folder
from ssrem.tasks.warehouse.home import Warehouse, landed_corpus

if TYPE_CHECKING:
    from ssrem.samples import Candidates

MODULES = {
    "masked-lm": "ssrem.negatives.tied_head.fine_tune",
    "lm": "ssrem.evaluators.language_model.fine_tune",
}
"""Language model to the module that fine-tunes it, with `fine_tune`, `SETTINGS` and the name of its CARD."""

_MANIFEST = "manifest.json"
"""File of a kept model with the digests of its other files."""

_COPIED = ("generator", "k", "text", "replaced", "tokens", "truncated")
"""Columns of `negatives` that are attributes of a Negative."""


def make_negatives(
    corpus: str,
    home: str,
    generator: str,
    settings: NegativeSettings = NegativeSettings(),
    *,
    resources: Resources = Resources(),
) -> bool:
    """Publish the negatives of the corpus by `generator`, a spec of `load_generator`; False if they are published
    already.

    Raises EvaluatorError for an unknown generator, GateError if it gives none, HomeError if the corpus has not landed.
    """
    import pyarrow as pa

    warehouse, learns = Warehouse.at(home), needs_model(generator)
    if not learns:  # refuses an unknown name before the stage opens
        load_generator(generator)
    parameters = {"corpus": corpus, "generator": generator, **settings.model_dump()}

    def recipe() -> Recipe:
        digest, _ = landed_corpus(warehouse, corpus)
        return Recipe(parameters, {corpus: digest, "tables": candidate_sources(warehouse, [corpus])})

    def build(stage: Stage) -> Built[bool]:
        candidates = load_candidates(stage.connection, [corpus])
        options: dict[str, Any] = {}
        if learns:
            content = {corpus: stage.recipe.inputs[corpus]}
            options["model"] = settings.model or str(masked_lm_for(warehouse, candidates, content))
        loaded = load_generator(generator, **options)
        rows = candidates.rows(SPLIT_CODES[settings.split])
        if settings.responses:
            rows = np.sort(np.random.default_rng(settings.seed).permutation(rows)[: settings.responses])
        stage.create("negatives")
        with progress(f"making {generator} negatives of {corpus}") as advance:
            made = 0
            for batch in filter(None, loaded.generate(candidates, rows, seed=settings.seed)):
                columns = {name: [getattr(negative, name) for negative in batch] for name in _COPIED}
                ids = candidates.response[[negative.response for negative in batch]]
                columns |= {"corpus": [corpus] * len(batch), "response_id": ids.tolist()}
                stage.insert("negatives", pa.table(columns))
                made += len(batch)
                advance(made)
        key = PartitionKey(corpus=corpus, generator=generator, split=settings.split)
        return Built(True, [Output("negatives", key)])

    return run_stage(warehouse, "negatives", recipe, build, done=False, resources=resources)


def settings_of(name: str, values: Mapping[str, Any]) -> Any:
    """The settings of a fine-tuning; EvaluatorError for an unknown one or a value that it cannot have."""
    return registered(f"{MODULES[name]}:SETTINGS").of(values)


def language_model_for(
    home: Warehouse, name: str, candidates: Candidates, corpora: Mapping[str, str], settings: Any
) -> Path:
    """Folder of the language model fine-tuned on the corpora (name → content hash) with the settings.

    It is fine-tuned once and kept in the home folder; a training that was stopped goes on.
    """
    content = json.dumps([asdict(settings), corpora], sort_keys=True)
    folder = home.root / name / hashlib.sha256(content.encode()).hexdigest()[:16]
    unfinished = home.root / "checkpoints" / f"{name}-{folder.name}"
    if folder_damage(folder, _MANIFEST, deep=True):
        fine_tune = registered(f"{MODULES[name]}:fine_tune")
        with progress(f"training {name}") as advance, whole_folder(folder) as draft:
            fine_tune(candidates, draft, settings, progress=advance, checkpoint=unfinished)
            digests = {path.name: sha256(path) for path in sorted(draft.iterdir())}
            write_json(draft / _MANIFEST, {"sha256": digests})
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def masked_lm_for(home: Warehouse, candidates: Candidates, corpora: Mapping[str, str]) -> Path:
    """Folder of the packaged encoder fine-tuned as a masked language model with the default settings."""
    return language_model_for(home, "masked-lm", candidates, corpora, settings_of("masked-lm", {}))
