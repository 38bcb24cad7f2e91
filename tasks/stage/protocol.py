"""The protocol of every stage: already done? open under the lock, done by another meanwhile? build, gate, publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ssrem.tasks.stage.ledger import Recipe, already_done
from ssrem.tasks.stage.progress import progress, staged
from ssrem.tasks.stage.stage import Output, Resources, Stage, open_stage
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import Address

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Built(Generic[Answer]):
    """What a stage has built. answer: what `run_stage` returns.

    outputs: partitions to publish of the staged tables, which the gate checks first; folders (from, to) to move into
    the home folder with them; retired: partitions that leave the snapshot. Where there is neither an output nor a
    retired partition, nothing is published. save: called when the gate has passed, writes the folders to move. after:
    called once it is published, still under the lock.
    """

    answer: Answer
    outputs: Sequence[Output] = ()
    folders: Mapping[Path, Path] = field(default_factory=dict)
    retired: Sequence[Address] = ()
    save: Callable[[], object] | None = None
    after: Callable[[], object] | None = None


def run_stage(
    home: Warehouse,
    name: str,
    recipe: Callable[[], Recipe],
    build: Callable[[Stage], Built[Answer]],
    *,
    done: Answer | Callable[[Recipe], Answer | None],
    resources: Resources | None = None,
) -> Answer:
    """Run the stage `name`, unless it is done already; returns the answer of `build`, or of `done`.

    recipe: what determines the outputs, asked before the stage opens and again under the lock, as another writer may
    have published meanwhile. done: the answer where a run of this recipe has published and all of it is still
    published; or a function that returns the answer where the work is done by another measure, None where it is not.
    Raises what `recipe`, `done` and `build` raise, GateError, and HomeError where the lock is held or the disk is full.
    """

    def answer_if_done(wanted: Recipe) -> Answer | None:
        if callable(done):
            return done(wanted)
        return done if already_done(home, name, wanted) else None

    if (answer := answer_if_done(recipe())) is not None:
        return answer
    with open_stage(home, name, recipe, resources) as stage:
        if (answer := answer_if_done(stage.recipe)) is not None:
            return answer
        with staged(_title(name, stage.recipe)) as work:
            built = build(stage)
            if built.outputs:
                with progress(f"checking what {name} has built"):
                    stage.gate()
            if built.save is not None:
                built.save()
            if built.outputs or built.retired:
                with progress(f"publishing what {name} has built"):
                    work.counts = stage.publish(built.outputs, folders=built.folders, retired=built.retired)
            if built.after is not None:
                built.after()
            return built.answer


def _title(name: str, recipe: Recipe) -> str:
    """The stage and what it works on: `train ssrem`, `tables chitchat`."""
    subjects = ("promote", "import", "study", "evaluator", "generator", "corpus", "dataset")
    return " ".join([name, *(str(recipe.parameters[key]) for key in subjects if key in recipe.parameters)])
