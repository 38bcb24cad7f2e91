"""Trained evaluators on disk: safetensors, JSON, and the encoder or transformer that cannot be had again by name.

`write` and `read` serve every evaluator that has an encoder, `write` and `read_contents` those that have none;
`save` and `load` are the bilinear ones' use of them.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import Encoder, load_encoder, load_saved
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Training
from ssrem.evaluators.bilinear.config import BilinearConfig
from ssrem.evaluators.core.scaling import Bounds
from ssrem.files import read_json, read_tensors, sha256, write_json, write_tensors

if TYPE_CHECKING:
    from ssrem.evaluators.bilinear.bilinear import Bilinear, State

    B = TypeVar("B", bound=Bilinear)

FORMAT = "ssrem-bilinear-1"
MANIFEST = "evaluator.json"
WEIGHTS = "weights.safetensors"
TRANSFORMER = "transformer"
"""The folder of a transformers model beside what was learned on it."""
_KEYS = ("format", "name", "config", "bounds", "encoder", "sha256", "signature")


class Trained(Protocol):
    """What `write` asks of an evaluator; its config is a dataclass."""

    name: ClassVar[str]
    config: Any
    training: Training | None

    @property
    def encoder(self) -> Encoder | None: ...

    @property
    def signature(self) -> str: ...


@dataclass(frozen=True)
class Contents:
    """What `read_contents` found: the manifest, tensors by name, bounds by part, and how training went."""

    about: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]
    bounds: Mapping[str, Bounds]
    training: Training | None


@dataclass(frozen=True)
class Saved(Contents):
    """What `read` found: the same, and the encoder."""

    encoder: Encoder


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
    form: str,
    tensors: Mapping[str, NDArray[Any]],
    bounds: Mapping[str, Bounds],
    card: Mapping[str, Any] | None,
    *,
    transformer: Path | None = None,
    **more: Any,
) -> None:
    """Write a model into `folder`; the manifest comes last, so a folder that has it is whole.

    form: names the format, and changes with it. transformer: a model's folder, copied to `folder`/TRANSFORMER.
    more: what else the manifest is to hold.
    """
    encoder = evaluator.encoder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    digests = {WEIGHTS: write_tensors(folder / WEIGHTS, tensors)}
    if transformer is not None:
        digests |= _copy(transformer, folder)
    if encoder is not None and encoder.origin is None:
        encoder.save(folder / "encoder")
    if card is not None:
        write_json(folder / "card.json", card)
    write_json(
        folder / MANIFEST,
        {
            "format": form,
            "name": evaluator.name,
            "signature": evaluator.signature,
            "config": asdict(evaluator.config),
            "bounds": {part: asdict(limits) for part, limits in bounds.items()},
            "encoder": encoder and {"signature": encoder.signature, "origin": encoder.origin},
            "sha256": digests,
            "training": asdict(evaluator.training) if evaluator.training else None,
            **more,
        },
    )


def read(
    folder: Path,
    name: str,
    form: str,
    tensors: Iterable[str],
    encoder: Encoder | None,
    *,
    parts: Iterable[str] = ("f", "g"),
    keys: Iterable[str] = (),
) -> Saved:
    """What `write` wrote, hashes and encoder checked; `check_signature` is the caller's last step.

    encoder: one that is loaded already, used where its signature is the model's. parts: of the bounds.
    keys: what the manifest must hold beside what `write` puts there itself.
    """
    found = read_contents(folder, name, form, tensors, parts=parts, keys=keys)
    try:
        wanted, origin = found.about["encoder"]["signature"], found.about["encoder"]["origin"]
    except (KeyError, TypeError) as error:
        raise _foreign(folder, error) from error
    if encoder is None or encoder.signature != wanted:
        encoder = load_encoder(origin) if origin else load_saved(folder / "encoder")
    if encoder.signature != wanted:
        raise EvaluatorError(
            f"{folder}: trained with encoder {wanted}, but {origin or 'the one beside it'} is now "
            f"{encoder.signature}; install the version it was trained with or train again"
        )
    return Saved(found.about, found.tensors, found.bounds, found.training, encoder)


def read_contents(
    folder: Path,
    name: str,
    form: str,
    tensors: Iterable[str],
    *,
    parts: Iterable[str] = ("f", "g"),
    keys: Iterable[str] = (),
) -> Contents:
    """The same of an evaluator without an encoder; the transformer beside it, where there is one, is checked."""
    about = read_json(folder / MANIFEST, ("format", "name"))
    if about["format"] != form or about["name"] != name:
        raise EvaluatorError(
            f"{folder}: holds {about['name']} in format {about['format']}, expected {name} in {form}"
        )
    about = read_json(folder / MANIFEST, (*_KEYS, *keys))
    try:
        digests = dict(about["sha256"])
        weights = digests.pop(WEIGHTS)
        bounds = {part: Bounds(**about["bounds"][part]) for part in parts}
        training = Training(**about["training"]) if about.get("training") else None
    except (KeyError, TypeError, ValueError) as error:
        raise _foreign(folder, error) from error
    _check_copy(folder, digests)
    return Contents(about, read_tensors(folder / WEIGHTS, weights, tensors), bounds, training)


def check_signature(folder: Path, evaluator: Trained, saved: Contents) -> None:
    """EvaluatorError where the evaluator made of `saved` is not the one that was written."""
    if evaluator.signature != saved.about["signature"]:
        raise EvaluatorError(
            f"{folder}: reads as {evaluator.signature}, saved as {saved.about['signature']}; "
            f"{MANIFEST} was changed, copy or train it again"
        )


def weights_hash(state: State) -> str:
    """sha256 over everything a bilinear evaluator learned: M and the bounds."""
    digest = hashlib.sha256(state.matrix.astype(np.float32).tobytes())
    digest.update(repr((asdict(state.f_bounds), asdict(state.g_bounds))).encode())
    return digest.hexdigest()


def save(folder: Path, evaluator: Bilinear, card: Mapping[str, Any] | None) -> None:
    """Write a bilinear evaluator into `folder`."""
    state = evaluator.state
    bounds = {"f": state.f_bounds, "g": state.g_bounds}
    write(folder, evaluator, FORMAT, {"matrix": state.matrix.astype(np.float32)}, bounds, card)


def load(folder: Path, cls: type[B], encoder: Encoder | None) -> B:
    """The bilinear evaluator that `save` wrote, checked against its hashes and signatures."""
    from ssrem.evaluators.bilinear.bilinear import State

    saved = read(folder, cls.name, FORMAT, ("matrix",), encoder)
    evaluator = cls(saved.encoder, BilinearConfig.of(saved.about["config"]))
    state = State(saved.tensors["matrix"].astype(np.float64), saved.bounds["f"], saved.bounds["g"])
    size = saved.encoder.dimensions
    if state.matrix.shape != (size, size):
        raise EvaluatorError(f"{folder}: weights of shape {state.matrix.shape} do not fit {size} dimensions")
    evaluator.keep(state)
    evaluator.training = saved.training
    check_signature(folder, evaluator, saved)
    return evaluator


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
    found = {path.relative_to(folder).as_posix(): path for path in _model_files(folder / TRANSFORMER)}
    for name in sorted(set(found) ^ set(digests)):
        what = "is missing" if name in digests else "was not saved with the model"
        raise EvaluatorError(f"{folder / name}: {what}; copy the model's folder or train it again")
    for name, path in found.items():
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


def _foreign(folder: Path, error: Exception) -> EvaluatorError:
    return EvaluatorError(f"{folder / MANIFEST}: not as ssrem writes it ({error}); train again")
