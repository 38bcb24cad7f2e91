"""Reads the folder of a trained evaluator: JSON, safetensors, and the encoder or transformer that has no name."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import Encoder, load_again
from ssrem.errors import EvaluatorError
from ssrem.evaluators import MANIFEST
from ssrem.evaluators.core.scaling import Bounds
from ssrem.files import read_json, read_tensors, sha256
from ssrem.training import Training

WEIGHTS = "weights.safetensors"
TRANSFORMER = "transformer"
"""The folder of the transformers model that an evaluator was trained on."""
_KEYS = ("format", "name", "config", "bounds", "encoder", "sha256", "signature")


@dataclass(frozen=True)
class Saved:
    """A saved evaluator: manifest, tensors by name, bounds by part, record of the training, and encoder, if any."""

    about: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]
    bounds: Mapping[str, Bounds]
    training: Training | None
    encoder: Encoder | None


def tensors_hash(tensors: Mapping[str, NDArray[Any]], bounds: Mapping[str, Bounds]) -> str:
    """sha256 of everything learned: weights by name, and bounds."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    digest.update(repr(sorted((part, asdict(limits)) for part, limits in bounds.items())).encode())
    return digest.hexdigest()


def read(folder: Path, name: str, form: str, encoder: Encoder | None) -> Saved:
    """The evaluator `name` saved in `folder` in the format `form`. Hashes are checked; the signature is not.

    encoder: one that is loaded already, used if its signature is that of the saved evaluator's. EvaluatorError for
    another evaluator or format, and for missing, added or changed files.
    """
    about = read_json(folder / MANIFEST, ("format", "name"))
    if about["format"] != form or about["name"] != name:
        raise EvaluatorError(
            f"{folder}: holds {about['name']} in format {about['format']}, expected {name} in {form}"
        )
    about = read_json(folder / MANIFEST, _KEYS)
    try:
        digests = dict(about["sha256"])
        weights = digests.pop(WEIGHTS)
        bounds = {part: Bounds(**limits) for part, limits in about["bounds"].items()}
        training = Training(**about["training"]) if about.get("training") else None
        wanted = about["encoder"] and (about["encoder"]["signature"], about["encoder"]["origin"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise foreign(folder, error) from error
    _check_copy(folder, digests)
    tensors = read_tensors(folder / WEIGHTS, weights, ())
    if wanted and (encoder is None or encoder.signature != wanted[0]):
        encoder = load_again(wanted[1], wanted[0], folder / "encoder")
    return Saved(about, tensors, bounds, training, encoder if wanted else None)


def copy_transformer(model: Path, folder: Path) -> dict[str, str]:
    """Copy a transformers model's files into `folder`/TRANSFORMER; path within `folder` → sha256."""
    target = folder / TRANSFORMER
    # An evaluator may be saved to the folder that it was loaded from.
    if not (target.exists() and target.samefile(model)):
        shutil.rmtree(target, ignore_errors=True)
        for path in _model_files(model):
            copy = target / path.relative_to(model)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return _digests(folder)


def _check_copy(folder: Path, expected: Mapping[str, str]) -> None:
    """EvaluatorError unless the files in `folder`/TRANSFORMER are exactly those expected, path → sha256."""
    digests = _digests(folder)
    for name in sorted(set(digests) ^ set(expected)):
        what = "is missing" if name in expected else "was not saved with the model"
        raise EvaluatorError(f"{folder / name}: {what}; copy the model's folder or train it again")
    for name in (name for name in expected if digests[name] != expected[name]):
        raise EvaluatorError(
            f"{folder / name}: its sha256 is not the one in {MANIFEST}; copy or train the model again"
        )


def _digests(folder: Path) -> dict[str, str]:
    """Path within `folder` → sha256, of the files of the transformers model in `folder`/TRANSFORMER."""
    return {path.relative_to(folder).as_posix(): sha256(path) for path in _model_files(folder / TRANSFORMER)}


def _model_files(folder: Path) -> list[Path]:
    """The files of a transformers model, sorted, without pickled weights, code and other runtimes' files."""
    kinds = (".json", ".txt", ".model", ".safetensors")
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in kinds
        and path.is_file()
        and path.relative_to(folder).parts[0] not in ("onnx", "openvino")
    ]


def foreign(folder: Path, error: Exception) -> EvaluatorError:
    """The error for a manifest with a missing or malformed value."""
    return EvaluatorError(f"{folder / MANIFEST}: not as ssrem writes it ({error}); train again")
