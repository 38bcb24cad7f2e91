"""Annotated sets, as read from files and pulled public sets, and as landed in the published tables."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.agreement.correlate import Floats, ScoredResponses
from ssrem.agreement.raters import Ratings
from ssrem.annotated_sets import EVAL, AnnotatedSet, read_set
from ssrem.annotated_sets.annotated import labels_of
from ssrem.annotated_sets.base import dataset_name
from ssrem.annotated_sets.known import known_set, known_sets
from ssrem.annotated_sets.published import PREFERENCE
from ssrem.errors import AnnotationError, say
from ssrem.evaluators import PARTS
from ssrem.files import sha256
from ssrem.samples import Labels, Sample, context_key, dialogue_units
from ssrem.tasks.versions import Version
from ssrem.tasks.warehouse.home import Warehouse, checked_name

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class AnnotatedFile:
    """An annotated set as read from a file. given: how the user named it; name: under which it lands; digest: hash of
    its content and of how it is read."""

    given: str
    name: str
    path: Path
    digest: str
    read: AnnotatedSet

    @property
    def contexts(self) -> list[tuple[str, ...]]:
        """The context of each response."""
        return [row.context for row in self.read.rows]

    def say_how_read(self) -> None:
        """Print the layout and what was left out, unless the layout is `eval` and nothing was."""
        if self.read.layout != EVAL or self.read.left_out:
            say(f"{self.given}: {self.read.summary}")


def pulled(home: Warehouse) -> Path:
    """The folder in the home folder for pulled public sets."""
    return home.root / "annotated-sets"


def annotated_file(
    home: Warehouse, file: str, layout: str | None = None, mapping: Mapping[str, Any] | None = None
) -> AnnotatedFile:
    """Read an annotated set.

    file: a file, or the name of a pulled set. layout: as `read_set` takes it; mapping: field → columns.

    Raises AnnotationError if it cannot be read or has no name that can be printed, if the mapping has an unknown field,
    or if `file` names a set that was not pulled or has changed since.
    """
    mapping = {field: str(columns) for field, columns in (mapping or {}).items()}
    path, known = Path(file), None
    if not path.exists() and (file in known_sets() or (not path.suffix and path.name == file)):
        known = known_set(file)
        path, layout = known.file(pulled(home)), layout or known.layout
        mapping = mapping or dict(known.map)
        if not path.exists():
            fetch = f"ssrem ratings pull {file} --home {shlex.quote(str(home.root))}"
            raise AnnotationError(f"{file} is not in {path.parent}; {fetch} fetches it")
        if not known.same(path):
            raise AnnotationError(f"{path} has changed since it was pulled; remove it and pull {file} again")
    read = read_set(path, layout, mapping)
    name = known.name if known else dataset_name(path)
    part = f"-{read.part}" if read.part and known is None else ""
    digest = sha256(path)
    if read.layout != EVAL:  # the same file read in another way is another set
        how = [read.layout, read.part, mapping if read.mapped else {}]
        digest = hashlib.sha256(json.dumps([digest, *how], sort_keys=True).encode()).hexdigest()
    name = checked_name(f"{name}{part}", "an annotated set", "rename the file", AnnotationError)
    return AnnotatedFile(file, name, path, digest, read)


def annotated_files(
    home: Warehouse, files: Sequence[str], layout: str | None = None, mapping: Mapping[str, Any] | None = None
) -> list[AnnotatedFile]:
    """Read annotated sets. Raises as `annotated_file` does, and AnnotationError if the mapping applies to none."""
    sets = [annotated_file(home, file, layout, mapping) for file in files]
    if mapping and sets and not any(one.read.mapped for one in sets):
        layouts = ", ".join(dict.fromkeys(one.read.layout for one in sets))
        raise AnnotationError(f"--map does not apply to {layouts}, whose fields are known; leave it out")
    return sets


def human_scores(sets: Iterable[AnnotatedFile], criterion: str | None) -> dict[str, tuple[str, Labels]]:
    """Name of each set → its digest, and its human scores by a criterion, by default 'overall' or the only one.

    Raises AnnotationError, which names the file, for a set without the criterion or whose mean scores are all
    equal, and for two sets of equal content or of one name.
    """
    scored: dict[str, tuple[str, Labels]] = {}
    for one in sets:
        for name, (digest, _) in scored.items():
            if one.digest == digest:
                raise AnnotationError(f"{one.given} is the annotated set {name} once more; name it once")
            if one.name == name:
                raise AnnotationError(f"{one.given}: another set is called {name} too; rename the file")
        try:
            scored[one.name] = one.digest, labels_of(one.read.rows, criterion)
        except AnnotationError as error:
            raise AnnotationError(f"{one.given}: {error}") from None
    return scored


@dataclass(frozen=True)
class LandedSet:
    """An annotated set of n responses in the published tables. sha256: digest of the set.

    samples, contexts, systems, truth (n,): the responses as evaluators get them, the context and system of each, and
    whether it is ground truth. If people voted on pairs of responses, `contexts` holds the pairs, since no responses of
    different pairs were compared. units (n,): `dialogue_units` of the contexts, which are resampled as a whole.
    """

    connection: duckdb.DuckDBPyConnection
    dataset: str
    sha256: str
    samples: Sequence[Sample]
    contexts: Sequence[str]
    units: Sequence[str]
    systems: Sequence[str | None]
    truth: np.ndarray[Any, np.dtype[np.bool_]]

    def responses(self, scores: Floats, human: Floats, *, ground_truth_kept: bool) -> ScoredResponses:
        """The responses with a human score, ground truth only if it is kept. scores, human: (n,), NaN for missing."""
        rated = ~np.isnan(human)
        excluded = rated & self.truth & (not ground_truth_kept)
        at = np.flatnonzero(rated & ~excluded).tolist()
        contexts, systems, units = ([of[n] for n in at] for of in (self.contexts, self.systems, self.units))
        return ScoredResponses(scores[at], human[at], contexts, systems, int(excluded.sum()), units)

    def human_scores(
        self, table: str = "human_scores", by: str = "aggregation"
    ) -> dict[tuple[str, Any], Floats]:
        """(criterion, aggregation) → the human score of each response (n,), NaN for missing; the keys are sorted.

        table: the table of scores. by: its column that is used in place of the aggregation.
        """
        query = (
            f"SELECT criterion, {by}, response_id::BIGINT, score FROM {table} WHERE dataset = ? ORDER BY ALL"
        )
        scores: dict[tuple[str, Any], Floats] = {}
        for criterion, of, number, score in self.connection.execute(query, [self.dataset]).fetchall():
            scores.setdefault((criterion, of), np.full(len(self.samples), np.nan))[number] = score
        return scores

    def ratings(self) -> dict[str, Ratings]:
        """Criterion → its ratings (raters, n), NaN for missing; raters have the numbers of the table `ratings`."""
        scores, none = self.human_scores("ratings", "rater"), np.full(len(self.samples), np.nan)
        last = dict(scores.keys())  # criterion → its last rater, as they are in order
        return {of: np.stack([scores.get((of, at), none) for at in range(last[of] + 1)]) for of in last}

    def scores(self, version: Version, table: str = "scores") -> dict[str, Floats]:
        """Part of the score (f, g or h) → its values (n,), NaN for missing; parts without any value are left out."""
        columns = self.connection.execute(
            f"SELECT response_id::BIGINT AS number, {', '.join(f'{part}::DOUBLE AS {part}' for part in PARTS)} "
            f"FROM {table} WHERE evaluator = ? AND version = ? AND dataset = ? AND kind = 'response'",
            [*version, self.dataset],
        ).fetchnumpy()
        scores = {part: np.full(len(self.samples), np.nan) for part in PARTS}
        for part, values in scores.items():
            found = np.ma.filled(columns[part], np.nan)
            values[columns["number"]] = np.where(np.isfinite(found), found, np.nan)
        return {part: values for part, values in scores.items() if not np.isnan(values).all()}


def landed_set(connection: duckdb.DuckDBPyConnection, dataset: str) -> LandedSet:
    """The annotated set named `dataset`, which must have landed."""
    columns = "sha256, context, response, reference, dialogue_id, system, ground_truth"
    query = f"SELECT {columns} FROM rated_responses WHERE dataset = ? ORDER BY response_id::BIGINT"
    rows = connection.execute(query, [dataset]).fetchall()
    samples = [Sample(tuple(context), *texts) for _, context, *texts, _, _, _ in rows]
    *_, dialogues, systems, truth = zip(*rows, strict=True)
    criteria = connection.execute("SELECT DISTINCT criterion FROM ratings WHERE dataset = ?", [dataset])
    paired = criteria.fetchall() == [(PREFERENCE,)] and set(Counter(dialogues).values()) == {2}
    units = dialogue_units(sample.context for sample in samples)
    contexts = list(dialogues) if paired else [context_key(sample.context) for sample in samples]
    return LandedSet(
        connection, dataset, rows[0][0], samples, contexts, units, systems, np.array(truth, dtype=bool)
    )


def landed_sets(home: Warehouse) -> dict[str, str]:
    """Name of each annotated set that has landed → the digest of its content."""
    return dict(home.query("SELECT DISTINCT dataset, sha256 FROM rated_responses ORDER BY ALL"))


def landed_contexts(home: Warehouse, dataset: str) -> Iterator[list[str]]:
    """The contexts of an annotated set that has landed; the query runs when the first context is taken."""
    query = "SELECT context FROM rated_responses WHERE dataset = ?"
    yield from (context for (context,) in home.query(query, [dataset]))
