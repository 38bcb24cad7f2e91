"""Flow `import_evaluator`: publish an evaluator that was trained in another home folder."""

from __future__ import annotations

from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.training.transfer import import_evaluator as publish


def import_evaluator(
    file: str,
    home: str = "warehouse",
    allow: list[str] | None = None,
    resources: Resources = Resources(),
) -> tuple[str, int, bool]:
    """Publish the evaluator in a file; returns its name, its version here, and whether it is new.

    Args:
        file: File that ssrem evaluators export wrote
        allow: Encoders and models, names or paths, that it may read or download in addition to its file
    """
    repair(home)
    return publish(file, home, allowed=allow or (), resources=resources)
