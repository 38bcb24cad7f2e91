"""Evaluators of dialogue responses that learn from people's own words, and their agreement with human scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ssrem.errors import SsremError

if TYPE_CHECKING:
    from ssrem.in_memory import Conversations, conversations
    from ssrem.model import SSREM, Model, load

__all__ = ["SSREM", "Conversations", "Model", "SsremError", "__version__", "conversations", "load"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """A function or class for notebooks, imported when it is first used, so that `import ssrem` stays fast."""
    if name not in __all__:
        raise AttributeError(f"module 'ssrem' has no attribute {name!r}")
    from ssrem import in_memory, model

    return getattr(in_memory, name, None) or getattr(model, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
