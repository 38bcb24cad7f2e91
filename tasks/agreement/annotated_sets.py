"""Annotated sets as users name them: a file, a folder, or the name of a pulled public set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ssrem.agreement.annotated import Labels, dataset_name, labels_of
from ssrem.annotated_sets import EVAL, AnnotatedSet, read_set
from ssrem.annotated_sets.known import known_set, known_sets
from ssrem.errors import AnnotationError, say
from ssrem.files import sha256
from ssrem.tasks.warehouse.home import Warehouse


@dataclass(frozen=True)
class AnnotatedFile:
    """An annotated set. given: as the user named it; name: the one it lands under; digest: of its content and of how it
    is read."""

    given: str
    name: str
    path: Path
    digest: str
    read: AnnotatedSet

    def say_how_read(self) -> None:
        """Print the layout and what was left out, unless the layout is `eval` and nothing was."""
        if self.read.layout != EVAL or self.read.left_out:
            say(f"{self.given}: {self.read.summary}")


@dataclass(frozen=True)
class LabelledFile:
    """Human scores of an annotated set, and the digest of its content."""

    digest: str
    labels: Labels


def pulled(home: Warehouse) -> Path:
    """The folder in the home folder for pulled public sets."""
    return home.root / "annotated-sets"


def annotated_file(
    home: Warehouse, file: str, layout: str | None = None, mapping: Mapping[str, str] | None = None
) -> AnnotatedFile:
    """Read an annotated set.

    file: a file, a folder, or the name of a pulled set. layout, mapping: as `read_set` takes them.

    Raises AnnotationError if it cannot be read, or if it names a set that was not pulled or has changed since.
    """
    path, known = Path(file), None
    if not path.exists() and (file in known_sets() or (not path.suffix and path.name == file)):
        known = known_set(file)
        path = known.file(pulled(home))
        layout = known.layout
    if known is not None and not path.exists():
        raise AnnotationError(
            f"{file} is known, but not in {path.parent}; ssrem ratings pull {file} fetches it"
        )
    if known is not None and not known.same(path):
        raise AnnotationError(f"{path} has changed since it was pulled; remove it and pull {file} again")
    annotated = read_set(path, layout, mapping)
    part = f"-{annotated.part}" if annotated.part and known is None else ""
    name = known.name if known else dataset_name(path.resolve() if path.is_dir() else path)
    return AnnotatedFile(file, f"{name}{part}", path, _digest(path, annotated, mapping), annotated)


def human_scores(sets: Iterable[AnnotatedFile], criterion: str | None) -> dict[str, LabelledFile]:
    """Annotated sets by name, each with the human scores of a criterion, by default 'overall' or its only one.

    AnnotationError, naming the file, for a set without the criterion, two files of equal content, or two of one name.
    """
    scored: dict[str, LabelledFile] = {}
    for one in sets:
        for name, other in scored.items():
            if one.digest == other.digest:
                raise AnnotationError(
                    f"{one.given} is the annotated set {name} once more; name each set once"
                )
            if one.name == name:
                raise AnnotationError(
                    f"{one.given}: another annotated set is called {name} too; rename one of the files"
                )
        try:
            scored[one.name] = LabelledFile(one.digest, labels_of(one.read.rows, criterion))
        except AnnotationError as error:
            raise AnnotationError(f"{one.given}: {error}") from None
    return scored


def _digest(path: Path, annotated: AnnotatedSet, mapping: Mapping[str, str] | None) -> str:
    """sha256 of the file; of the folder's files with their names, or of the part or mapping as well, if there is
    one."""
    how = {"part": annotated.part, "mapping": dict(mapping or {}) if annotated.mapped else {}}
    if len(annotated.files) == 1 and not any(how.values()):
        return sha256(annotated.files[0])
    files = [
        (str(file.relative_to(path)) if path in file.parents else file.name, sha256(file))
        for file in annotated.files
    ]
    return hashlib.sha256(json.dumps([files, how], sort_keys=True).encode()).hexdigest()
