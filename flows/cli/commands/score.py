"""`ssrem score`: scores of the responses in a file."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import read_samples
from ssrem.errors import AnnotationError, SsremError
from ssrem.evaluators import packaged
from tasks.stage.progress import progress
from tasks.training.versions import in_use, versions
from tasks.warehouse.files import check_target, whole_file
from tasks.warehouse.home import Warehouse


def score(options: argparse.Namespace, home: Warehouse) -> None:
    """Print or write a score for each response; rows count from 1, as in messages about the file."""
    target = Path(options.output) if options.output else None
    with _writing(target):
        if target:
            check_target(target)  # scoring may take long
    samples = read_samples(Path(options.file))
    if not samples:
        raise AnnotationError(f"{options.file} is an empty list; there is nothing to score")
    if options.evaluator in packaged() and not versions(home, options.evaluator):
        print(
            f"{options.evaluator}: none trained in {home.root}, so the one that comes with ssrem",
            file=sys.stderr,
        )
    with progress(f"scoring {options.file} with {options.evaluator}"):
        evaluator = in_use(home, options.evaluator)
        parts = evaluator.components(samples)
    lines = [] if options.json else ["row\tscore\tf\tg\th"]
    for number, value in enumerate(parts.score):
        values: dict[str, Any] = {"row": number + 1, "score": _or_none(value)}
        values |= {part: _or_none(getattr(parts, part)[number]) for part in ("f", "g", "h")}
        lines.append(
            json.dumps({**values, "signature": evaluator.signature}) if options.json else _tabbed(values)
        )
    text = "\n".join(lines) + "\n"
    if target is None:
        sys.stdout.write(text)
        return
    with _writing(target), whole_file(target) as draft:
        draft.write_text(text, encoding="utf-8")


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _tabbed(values: dict[str, Any]) -> str:
    cells = ("" if v is None else f"{v:.6f}" if isinstance(v, float) else str(v) for v in values.values())
    return "\t".join(cells)


@contextmanager
def _writing(target: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SsremError(f"cannot write {target}: {error.strerror}; choose another --output") from None
