"""How a sentence encoder makes one vector of a model's token vectors, as its folder says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.encoders import hub
from ssrem.errors import EvaluatorError

MODES = ("mean", "cls", "max")

# sentence-transformers wrote flags before it wrote "pooling_mode".
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class Pooling:
    """mode: one of MODES. unit: whether vectors get unit length. lower: whether texts are lower-cased first.

    max_length: tokens, those that the tokenizer adds included, or None where the folder does not say.
    """

    mode: str = "mean"
    unit: bool = False
    lower: bool = False
    max_length: int | None = None

    @classmethod
    def of(cls, folder: Path) -> Pooling:
        """As the sentence-transformers files beside the model say; the plain mean where there are none.

        EvaluatorError for a pipeline with other parts, poolings or prompts: leaving them out would give
        vectors that are not the model's.
        """
        if not (folder / "modules.json").is_file():
            return cls()
        modules = _read(folder, "modules.json")
        try:
            parts = [(module["type"].rpartition(".")[2], module["path"]) for module in modules]
        except (KeyError, TypeError, AttributeError) as error:
            raise EvaluatorError(
                f"model {folder}: modules.json is not a list of modules ({error!r})"
            ) from error
        kinds = [kind for kind, _ in parts]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise EvaluatorError(
                f"model {folder}: its modules are {', '.join(kinds)}; only a Transformer with Pooling, "
                "and Normalize where wanted, can be used"
            )
        prompt = _settings(folder, "config_sentence_transformers.json").get("default_prompt_name")
        if prompt is not None:
            raise EvaluatorError(
                f"model {folder}: expects its prompt {prompt!r} before every text; name another"
            )
        transformer = _settings(folder, f"{parts[0][1]}/sentence_bert_config.json")
        length = transformer.get("max_seq_length")
        if length is not None and (type(length) is not int or length < 1):
            raise EvaluatorError(f"model {folder}: its max_seq_length is {length!r}, expected a whole number")
        return cls(
            mode=_mode(folder, _settings(folder, f"{parts[1][1]}/config.json")),
            unit="Normalize" in kinds,
            lower=bool(transformer.get("do_lower_case", False)),
            max_length=length,
        )


def _mode(folder: Path, settings: dict[str, Any]) -> str:
    mode = settings.get("pooling_mode") or [mode for flag, mode in _FLAGS.items() if settings.get(flag)]
    modes = [str(one) for one in mode] if isinstance(mode, list) else [str(mode)]
    if len(modes) != 1 or modes[0] not in MODES:
        raise EvaluatorError(
            f"model {folder}: its pooling is {' with '.join(modes) or 'not said'}; one of {', '.join(MODES)} "
            "can be used"
        )
    return modes[0]


def _settings(folder: Path, file: str) -> dict[str, Any]:
    """The JSON object in a file of the model, empty where it has no such file."""
    file = file.lstrip("/")
    if ".." in Path(file).parts:
        raise EvaluatorError(f"model {folder}: modules.json names {file!r}, which is not in it")
    content = _read(folder, file) if (folder / file).exists() else {}
    if not isinstance(content, dict):
        raise EvaluatorError(f"model {folder}: {file} is no JSON object; copy it again")
    return content


def _read(folder: Path, file: str) -> Any:
    try:
        return json.loads((folder / file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EvaluatorError(
            f"model {folder}: {file} is not JSON ({hub.one_line(error)}); copy it again"
        ) from error
