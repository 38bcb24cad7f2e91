"""Trained evaluators on disk: safetensors, JSON, and the encoder or transformer that cannot be had again by name."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import Encoder, load_again
from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.scaling import Bounds
from ssrem.files import read_json, read_tensors, sha256, write_json, write_tensors
from ssrem.training import Training

MANIFEST = "evaluator.json"
WEIGHTS = "weights.safetensors"
TRANSFORMER = "transformer"
"""The folder of a transformers model beside what was learned on it."""
_KEYS = ("format", "name", "config", "bounds", "encoder", "sha256", "signature")


class State(Protocol):
    """What was learned. tensors: by name. bounds: part → lowest and highest value. tuned: number of human scores."""

    @property
    def tensors(self) -> Mapping[str, NDArray[Any]]: ...

    @property
    def bounds(self) -> Mapping[str, Bounds]: ...

    @property
    def tuned(self) -> int: ...


class Trained(Protocol):
    """The attributes of an evaluator that `write` reads. form: name of the format. config: a dataclass."""

    name: ClassVar[str]
    form: ClassVar[str]
    config: Any
    training: Training | None
    encoder: Encoder | None

    @property
    def state(self) -> State: ...

    @property
    def signature(self) -> str: ...


@dataclass(frozen=True)
class Saved:
    """What `read` gives: the manifest, tensors by name, bounds by part, how training went, and the encoder, if any."""

    about: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]
    bounds: Mapping[str, Bounds]
    training: Training | None
    encoder: Encoder | None


def tensors_hash(tensors: Mapping[str, NDArray[Any]], bounds: Mapping[str, Bounds]) -> str:
    """sha256 over everything learned: weights by name, and bounds."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    digest.update(repr(sorted((part, asdict(limits)) for part, limits in bounds.items())).encode())
    return digest.hexdigest()


def write(
    folder: Path,
    evaluator: Trained,
    card: Mapping[str, Any] | None,
    more: Mapping[str, Any] | None = None,
    *,
    transformer: Path | None = None,
) -> None:
    """Write a trained evaluator into `folder`, the manifest last: a folder that has one is complete.

    more: further keys of the manifest. transformer: a model's folder, copied to `folder`/TRANSFORMER.
    """
    encoder, state = evaluator.encoder, evaluator.state
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    digests = {WEIGHTS: write_tensors(folder / WEIGHTS, state.tensors)}
    if transformer is not None:
        digests |= _copy(transformer, folder)
    if encoder is not None and encoder.origin is None:
        encoder.save(folder / "encoder")
    if card is not None:
        write_json(folder / "card.json", card)
    about = {
        "format": evaluator.form,
        "name": evaluator.name,
        "signature": evaluator.signature,
        "config": asdict(evaluator.config),
        "bounds": {part: asdict(limits) for part, limits in state.bounds.items()},
        "encoder": encoder and {"signature": encoder.signature, "origin": encoder.origin},
        "sha256": digests,
        "training": asdict(evaluator.training) if evaluator.training else None,
        "tuned": state.tuned,
    }
    write_json(folder / MANIFEST, {**about, **(more or {})})


def read(folder: Path, name: str, form: str, encoder: Encoder | None) -> Saved:
    """What `write` wrote: hashes, encoder and the transformer beside it are checked, the signature is not yet.

    encoder: one that is loaded already, used where its signature is the model's.
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


def _copy(model: Path, folder: Path) -> dict[str, str]:
    """Copy a transformers model's files into `folder`/TRANSFORMER; path within `folder` → sha256."""
    target = folder / TRANSFORMER
    # An evaluator may be saved again where it was loaded from.
    if not (target.exists() and target.samefile(model)):
        shutil.rmtree(target, ignore_errors=True)
        for path in sorted(_model_files(model)):
            copy = target / path.relative_to(model)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return {path.relative_to(folder).as_posix(): sha256(path) for path in sorted(_model_files(target))}


def _check_copy(folder: Path, digests: Mapping[str, str]) -> None:
    """EvaluatorError unless `folder`/TRANSFORMER holds exactly what was copied there, as it was copied."""
    files = {path.relative_to(folder).as_posix(): path for path in _model_files(folder / TRANSFORMER)}
    for name in sorted(set(files) ^ set(digests)):
        what = "is missing" if name in digests else "was not saved with the model"
        raise EvaluatorError(f"{folder / name}: {what}; copy the model's folder or train it again")
    for name, path in files.items():
        if sha256(path) != digests[name]:
            raise EvaluatorError(
                f"{path}: its sha256 is not the one in {MANIFEST}; copy or train the model again"
            )


def _model_files(folder: Path) -> list[Path]:
    """What a transformers model is made of; neither pickled weights, nor code, nor other runtimes' files."""
    kinds = (".json", ".txt", ".model", ".safetensors")
    return [
        path
        for path in folder.rglob("*")
        if path.suffix in kinds
        and path.is_file()
        and path.relative_to(folder).parts[0] not in ("onnx", "openvino")
    ]


def foreign(folder: Path, error: Exception) -> EvaluatorError:
    """What to raise for a manifest that lacks something or holds it in another form."""
    return EvaluatorError(f"{folder / MANIFEST}: not as ssrem writes it ({error}); train again")
