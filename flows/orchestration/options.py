"""Settings of the flows: Prefect's page shows them as a form; `prefect.yaml` and the command line fill them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from ssrem.config import SIMILARITY_SPEAKERS
from ssrem.errors import RunnerError
from ssrem.tasks.training.settings import LabelOptions, Margins

Seed = Field(0, ge=0, description="Seed of every draw")


class Options(BaseModel, frozen=True, extra="forbid"):
    """Immutable settings; an unknown one is refused."""


class DumpOptions(Options):
    """How a dump is read and landed."""

    format: str | None = Field(
        None,
        description="A format that docs/formats.md lists, such as jsonl or slack; by default guessed from the content",
    )
    mapping: dict[str, str] | None = Field(
        None, description="Field to column; columns joined by + are a key together"
    )
    encoding: str | None = Field(
        None, description="Encoding of text, such as cp1252; by default UTF-8, or guessed from the content"
    )
    time_format: str | None = Field(
        None, description="How times are written, such as %d.%m.%Y %H:%M; by default in any common form"
    )
    name: str | None = Field(None, description="Name of the corpus; by default that of the file or folder")
    speakers: Literal["auto", "person", "conversation"] = Field(
        "auto",
        description="What a speaker id names: a person, or a seat in one conversation; auto refuses what looks "
        "like seats",
    )
    not_people: list[str] = Field(
        [],
        description="Speakers that are not people, besides those that the format knows, such as AutoModerator: their "
        "turns serve only as context; the name none stands for everyone being a person",
    )
    replace: bool = Field(False, description="Land again what has landed, with other options")
    max_quarantine: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Share of the messages above which a dump that cannot land whole is refused",
    )
    pseudonymise: bool = Field(
        False, description="Land keyed hashes instead of ids, and mask personal data in texts"
    )
    pseudonym_key_file: str | None = Field(
        None,
        description="File with the key of the pseudonyms, never the key itself: Prefect stores parameters",
    )


class TableOptions(Options):
    """What determines the speaker tables of a corpus."""

    seed: int = Seed
    context_turns: int = Field(5, ge=1, description="Turns of a context at most")
    encoder: str | None = Field(None, description="Encoder of utterances; by default wordllama")
    addressees: Literal["all", "stated"] = Field(
        "all",
        description="Turns in SP, the same-partner sets: all, or only those whose addressee is stated or replied to",
    )
    similarity: Annotated[int, Field(ge=1)] | Literal["all", "none"] = Field(
        SIMILARITY_SPEAKERS,
        description="Speakers, drawn by the seed, whose sets' mean similarity is measured; all; or none",
    )


class TrainingOptions(Options):
    """How evaluators learn, and what they learn from besides the corpora."""

    encoder: str | None = Field(
        None, description="Encoder, for evaluators that take one; by default each one's own"
    )
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings such as seed or epochs; each evaluator gets those that it has",
    )
    labels: LabelOptions | None = Field(None, description="Human scores to learn from as well")


class AnnotatedSetOptions(Options):
    """Annotated sets and how they are read."""

    files: list[str] = Field([], description="Files, folders or names of pulled sets")
    layout: str | None = Field(None, description="Layout of the files; by default guessed from the content")
    mapping: dict[str, str] | None = Field(None, description="Field to column, where the layout is a table")
    replace: bool = Field(
        False, description="Replace sets of the same names with other content, and score these again"
    )


class PipelineOptions(TableOptions):
    """What a whole run does besides landing its dump."""

    drop_folder: str | None = Field(None, description="Folder whose complete dumps land as well")
    retrain: bool = Field(
        False, description="Retrain all evaluators in use that have not seen every landed corpus"
    )
    margins: Margins = Field(
        Margins(), description="How much worse than the version in use a promoted version may be"
    )


class AgreementOptions(Options):
    """How scores are compared with human scores. None: as in the annotated set's last run."""

    keep_ground_truth: bool = Field(False, description="Correlate ground-truth responses too")
    force_systems: bool | None = Field(
        None, description="Also compute figures at system level for fewer than five systems; at first no"
    )
    test: Literal["paired-bootstrap", "perm-both", "williams"] | None = Field(
        None, description="Test of the difference between two evaluators; at first paired-bootstrap"
    )
    permutations: int | None = Field(
        None, ge=0, description="Permutations behind p_permuted of agreement, 0 for none; at first 0"
    )


class RunnerOptions(Options):
    """Where shards are processed. RunnerError where Dask is not installed, or an address has no runner."""

    name: Literal["process", "dask"] = Field(
        "process",
        description="This process, or workers of Dask, which see the home folder at the same path",
    )
    address: str | None = Field(
        None, description="Address of a running cluster; by default workers are started here"
    )
    workers: int = Field(2, ge=1, description="Workers started here")

    @model_validator(mode="after")
    def _check(self) -> RunnerOptions:
        if self.name == "process":
            if self.address:
                raise RunnerError(
                    f"--runner-address {self.address} needs the kind of cluster; add --runner dask"
                )
        elif not find_spec("distributed"):
            raise RunnerError("--runner dask is not installed; pip install 'ssrem[dask]'")
        return self
