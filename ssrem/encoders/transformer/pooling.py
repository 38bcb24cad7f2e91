"""How a sentence encoder pools token vectors into one, as the files in its folder say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.errors import EvaluatorError, one_line

_MODES: dict[str, Callable[[Any], Any]] = {
    "mean": lambda states: states.mean(dim=1),
    "cls": lambda states: states[:, 0],
    "max": lambda states: states.amax(dim=1),
}

# Older versions of sentence-transformers wrote flags such as pooling_mode_mean_tokens instead of "pooling_mode".
_FLAG = "pooling_mode_"


@dataclass(frozen=True)
class Pooling:
    """How the states of a text's tokens become its vector. mode: mean, cls or max. unit: whether it gets unit length.

    lower: whether texts are lower-cased first. max_length: tokens including those that the tokenizer adds, or None if
    the folder does not say.
    """

    mode: str = "mean"
    unit: bool = False
    lower: bool = False
    max_length: int | None = None

    @classmethod
    def of(cls, folder: Path) -> Pooling:
        """The pooling that the sentence-transformers files in `folder` describe; the mean if there are none.

        Raises EvaluatorError for a pipeline with other modules, poolings or prompts: ignoring them would give
        vectors that are not the model's.
        """
        if not (folder / "modules.json").is_file():
            return cls()
        try:
            modules = [
                (module["type"].rpartition(".")[2], module["path"])
                for module in _read(folder, "modules.json")
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise EvaluatorError(
                f"model {folder}: modules.json is not a list of modules ({error!r})"
            ) from error
        kinds = [kind for kind, _ in modules]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise EvaluatorError(
                f"model {folder}: its modules are {', '.join(kinds)}; only a Transformer with Pooling "
                "and an optional Normalize can be used"
            )
        prompt = _settings(folder, "config_sentence_transformers.json").get("default_prompt_name")
        if prompt is not None:
            raise EvaluatorError(
                f"model {folder}: expects its prompt {prompt!r} before every text; name another model"
            )
        transformer = _settings(folder, f"{modules[0][1]}/sentence_bert_config.json")
        length = transformer.get("max_seq_length")
        if length is not None and (type(length) is not int or length < 1):
            raise EvaluatorError(f"model {folder}: its max_seq_length is {length!r}, expected a whole number")
        return cls(
            mode=_mode(folder, _settings(folder, f"{modules[1][1]}/config.json")),
            unit="Normalize" in kinds,
            lower=bool(transformer.get("do_lower_case", False)),
            max_length=length,
        )


def pool(states: Any, mode: str, mask: Any = None) -> Any:
    """Vectors (b, d) of token vectors (b, t, d), torch tensors both.

    mask: bool (b, t), False for padding at the end.
    """
    if mask is None or mode == "cls":
        return _MODES[mode](states)
    if mode == "max":
        return states.masked_fill(~mask[:, :, None], float("-inf")).amax(dim=1)
    return (states * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1)[:, None]


def _mode(folder: Path, settings: dict[str, Any]) -> str:
    flags = [name for name, value in sorted(settings.items()) if name.startswith(_FLAG) and value]
    mode = settings.get("pooling_mode") or [
        flag.removeprefix(_FLAG).removesuffix("_tokens") for flag in flags
    ]
    modes = [str(one).removesuffix("_token") for one in (mode if isinstance(mode, list) else [mode])]
    if len(modes) != 1 or modes[0] not in _MODES:
        raise EvaluatorError(
            f"model {folder}: its pooling is {' with '.join(modes) or 'not said'}; one of {', '.join(_MODES)} "
            "can be used"
        )
    return modes[0]


def _settings(folder: Path, file: str) -> dict[str, Any]:
    """The JSON object in a file of the model; empty if there is no such file."""
    file = file.lstrip("/")
    if ".." in Path(file).parts:
        raise EvaluatorError(f"model {folder}: modules.json names {file!r}, which is outside the folder")
    content = _read(folder, file) if (folder / file).exists() else {}
    if not isinstance(content, dict):
        raise EvaluatorError(f"model {folder}: {file} is not a JSON object; copy it again")
    return content


def _read(folder: Path, file: str) -> Any:
    try:
        return json.loads((folder / file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EvaluatorError(
            f"model {folder}: {file} is not JSON ({one_line(error)}); copy it again"
        ) from error
