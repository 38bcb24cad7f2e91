"""Bilinear evaluators on disk: safetensors, JSON, and the encoder where it cannot be had again by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ssrem.encoders import Encoder, load_encoder, load_saved
from ssrem.encoders.files import read_json, read_tensors, write_json, write_tensors
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Training
from ssrem.evaluators.config import BilinearConfig
from ssrem.evaluators.scaling import Bounds

if TYPE_CHECKING:
    from ssrem.evaluators.bilinear import Bilinear, State

    B = TypeVar("B", bound=Bilinear)

FORMAT = "ssrem-bilinear-1"
MANIFEST = "evaluator.json"
_KEYS = ("format", "name", "config", "bounds", "encoder", "sha256", "signature")


def weights_hash(state: State) -> str:
    """sha256 over everything learned: M and the bounds."""
    digest = hashlib.sha256(state.matrix.astype(np.float32).tobytes())
    digest.update(repr((asdict(state.f_bounds), asdict(state.g_bounds))).encode())
    return digest.hexdigest()


def save(folder: Path, evaluator: Bilinear, card: Mapping[str, Any] | None) -> None:
    """Write the model into `folder`; the manifest comes last, so a folder that has it is whole."""
    state, encoder = evaluator.state, evaluator.encoder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    digest = write_tensors(folder / "weights.safetensors", {"matrix": state.matrix.astype(np.float32)})
    if encoder.origin is None:
        encoder.save(folder / "encoder")
    if card is not None:
        write_json(folder / "card.json", card)
    write_json(
        folder / MANIFEST,
        {
            "format": FORMAT,
            "name": evaluator.name,
            "signature": evaluator.signature,
            "config": asdict(evaluator.config),
            "bounds": {"f": asdict(state.f_bounds), "g": asdict(state.g_bounds)},
            "encoder": {"signature": encoder.signature, "origin": encoder.origin},
            "sha256": {"weights.safetensors": digest},
            "training": asdict(evaluator.training) if evaluator.training else None,
        },
    )


def load(folder: Path, cls: type[B], encoder: Encoder | None) -> B:
    """The evaluator that `save` wrote, checked against its hashes and signatures."""
    from ssrem.evaluators.bilinear import State

    about = read_json(folder / MANIFEST, ("format", "name"))
    if about["format"] != FORMAT or about["name"] != cls.name:
        raise EvaluatorError(
            f"{folder}: holds {about['name']} in format {about['format']}, expected {cls.name} in {FORMAT}"
        )
    about = read_json(folder / MANIFEST, _KEYS)
    try:
        weights = about["sha256"]["weights.safetensors"]
        bounds = {key: Bounds(**about["bounds"][key]) for key in ("f", "g")}
        wanted, origin = about["encoder"]["signature"], about["encoder"]["origin"]
        training = Training(**about["training"]) if about.get("training") else None
    except (KeyError, TypeError) as error:
        raise EvaluatorError(f"{folder / MANIFEST}: not as ssrem writes it ({error}); train again") from error
    tensors = read_tensors(folder / "weights.safetensors", weights, ("matrix",))
    if encoder is None or encoder.signature != wanted:
        encoder = load_encoder(origin) if origin else load_saved(folder / "encoder")
    if encoder.signature != wanted:
        raise EvaluatorError(
            f"{folder}: trained with encoder {wanted}, but {origin or 'the one beside it'} is now "
            f"{encoder.signature}; install the version it was trained with or train again"
        )
    evaluator = cls(encoder, BilinearConfig.of(about["config"]))
    state = State(tensors["matrix"].astype(np.float64), bounds["f"], bounds["g"])
    size = encoder.dimensions
    if state.matrix.shape != (size, size):
        raise EvaluatorError(f"{folder}: weights of shape {state.matrix.shape} do not fit {size} dimensions")
    evaluator.keep(state)
    evaluator.training = training
    if evaluator.signature != about["signature"]:
        raise EvaluatorError(
            f"{folder}: reads as {evaluator.signature}, saved as {about['signature']}; "
            f"{MANIFEST} was changed, copy or train it again"
        )
    return evaluator
