"""Human scores to learn from, checked before a training starts."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class HumanScores:
    """Human scores to learn from."""

    file: str = Field(description="Annotated set, a file or the name of a pulled set")
    criterion: str | None = Field(None, description="Criterion to learn; by default overall")
    alone: bool = Field(False, description="Learn from the human scores alone, not from the corpora")
