"""The settings of the stages: each model is a group of command-line options, the parameter of a flow, and what the
ledger records of a run. Prefect's page shows them as a form. The field `map` is the option `--map`, and so on."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from pydantic import Field, model_validator

from ssrem.errors import RunnerError
from ssrem.settings import Count, Memory, Natural, Pairs, Percentage, Seed, Settings
from ssrem.tables.speaker_sets import TableSettings

__all__ = [
    "AgreementSettings",
    "AnnotatedSets",
    "AskingSettings",
    "DumpSettings",
    "Margins",
    "NegativeSettings",
    "PipelineSettings",
    "Resources",
    "Runner",
    "StudySettings",
    "TableSettings",
    "TrainSettings",
]


class Resources(Settings):
    """What DuckDB may use."""

    memory_limit: Memory | None = Field(
        None,
        description="memory above which DuckDB spills to disk, such as 2GB (default: by stage, 2GB at most)",
    )
    threads: Count | None = Field(None, description="threads of DuckDB (default: all cores)")


class Runner(Settings):
    """Where shards are encoded and scored. RunnerError where Dask is not installed, or an address has no runner."""

    runner: Literal["process", "dask"] = Field(
        "process",
        description="where to encode and score: in this process, or on workers of Dask, which must all see "
        "the home folder under the same path",
    )
    runner_address: str | None = Field(
        None, description="address of a running cluster (default: workers here)"
    )
    workers: Count = Field(2, description="workers started here")

    @model_validator(mode="after")
    def _check(self) -> Runner:
        if self.runner == "process":
            if self.runner_address:
                raise RunnerError(
                    f"--runner-address {self.runner_address} needs the kind of cluster; add --runner dask"
                )
        elif not find_spec("distributed"):
            raise RunnerError("--runner dask is not installed; pip install 'ssrem[dask]'")
        return self


class DumpSettings(Settings):
    """How a dump is read and landed."""

    format: str | None = Field(
        None,
        description="a format that docs/formats.md lists, such as jsonl or slack (default: guessed from the "
        "content)",
    )
    map: Pairs | None = Field(
        None, description="FIELD=COLUMN: which column is which field; FIELD=A+B joins columns to a key"
    )
    encoding: str | None = Field(
        None,
        description="encoding of text, such as cp1252 or shift_jis (default: UTF-8, UTF-16 by its mark, "
        "cp1252 where the content is like it)",
    )
    time_format: str | None = Field(
        None, description="how times are written, such as '%d.%m.%Y %H:%M' (default: any common form)"
    )
    name: str | None = Field(
        None, description="name of the corpus (default: that of the file, or of the folder of several)"
    )
    speakers: Literal["auto", "person", "conversation"] = Field(
        "auto",
        description="what a speaker id names: a person, whatever the conversation, or a seat in one "
        "conversation (default: person, but ids that look like seats stop the ingest)",
    )
    not_people: tuple[str, ...] = Field(
        (),
        description="speakers to treat as bots, besides those that the format knows, such as AutoModerator: "
        "their turns are context only; none turns the format's list off",
    )
    max_quarantine: Percentage = Field(
        0.05,
        description="refuse a dump if more than this share of its messages cannot land, such as 5%; 100% "
        "lands the rest, however small",
    )
    pseudonymise: bool = Field(
        False,
        description="land keyed hashes instead of ids, and mask e-mail addresses, phone numbers and user "
        "handles",
    )
    pseudonym_key: str | None = Field(
        None,
        description="file with the key of the pseudonyms, outside the home folder, never the key itself "
        "(default: $SSREM_PSEUDONYM_KEY is the key)",
    )
    replace: bool = Field(False, description="land again what has landed, with other options")


class NegativeSettings(Settings):
    """What determines the negatives of a corpus."""

    split: Literal["train", "valid", "test"] = Field("train", description="split of the responses")
    responses: Natural = Field(1000, description="true responses to make negatives for, 0 for all")
    model: str | None = Field(
        None,
        description="masked language model of mask-and-fill, a name or folder (default: one fine-tuned "
        "here, once)",
    )
    seed: Seed = Field(0, description="seed of every draw")


class TrainSettings(Settings):
    """How evaluators learn, and what they learn from besides the corpora."""

    seed: Seed = Field(0, description="seed of the training")
    set: Pairs = Field(
        {}, description="KEY=VALUE: settings, such as epochs=10 or reference=embedding-average"
    )
    negatives: str | None = Field(None, description="negatives to learn from, such as random-1+mask-and-fill")
    init: str | None = Field(None, description="transformer to start from, a name or folder")
    device: str | None = Field(None, description="cpu, cuda or mps (default: the best available)")
    encoder: str | None = Field(
        None,
        description="wordllama, word2vec, glove-6b-50d, all-minilm-l6-v2, a vectors file, a transformer's "
        "folder or hf:NAME, a gensim.downloader name, or A+B (default: each evaluator's own)",
    )
    labels: tuple[str, ...] = Field(
        (),
        description="annotated sets whose human scores to learn from as well; blends learn from several "
        "sets at once, and are tested on each without its scores",
    )
    map: Pairs | None = Field(
        None,
        description="FIELD=COLUMN: which column of a table of --labels is which field, as in ssrem correlate",
    )
    criterion: str | None = Field(None, description="criterion of --labels to learn (default: overall)")
    labels_only: bool = Field(False, description="learn from the human scores, not from the corpora")


class Margins(Settings):
    """By how much a challenger may be worse than the champion and still be promoted."""

    identification: float = Field(
        0.01, ge=0, le=1, description="of the mean share of negatives that the true response is above"
    )
    agreement: float = Field(0.05, ge=0, le=1, description="of Spearman's correlation with human scores")


class AnnotatedSets(Settings):
    """How annotated sets are read."""

    layout: str | None = Field(
        None,
        description="layout of annotated sets: eval, usr, fed, grade, grade:PART, humod, csv, tsv, parquet "
        "or jsonl (default: guessed from the content)",
    )
    map: Pairs | None = Field(
        None,
        description="FIELD=COLUMN: which column of a table is which field: context response score criterion "
        "rater model reference dialogue; score.NAME=A+B for raters' columns; separator=TEXT between turns "
        "(default: a line break)",
    )
    replace: bool = Field(
        False,
        description="replace a set of the same name with other content; all evaluators that scored it score "
        "it again",
    )


class AgreementSettings(Settings):
    """How scores are compared with human scores. None: as in the annotated set's last run."""

    keep_ground_truth: bool = Field(
        False, description="correlate ground-truth responses too (default: left out)"
    )
    force_systems: bool | None = Field(
        None,
        description="also compute figures at system level for fewer than five systems, flagged as forced "
        "(default: as in the last run, at first no)",
    )
    test: Literal["paired-bootstrap", "perm-both", "williams"] | None = Field(
        None,
        description="test of the difference between two evaluators, in comparisons and rankings: paired "
        "bootstrap over contexts, permutation, or Williams' test (default: as in the last run, at first "
        "paired-bootstrap)",
    )
    permutations: Natural | None = Field(
        None,
        description="permutations of the test of no correlation, p_permuted in the table agreement; 0 for "
        "no test (default: as in the last run, at first none)",
    )


class AskingSettings(Settings):
    """Settings of evaluators that learn nothing, and how those that ask an endpoint ask it in this run."""

    set: Pairs = Field(
        {},
        description="KEY=VALUE: settings of an evaluator that learns nothing, such as model=NAME "
        "base_url=URL prompt=FILE of judge (docs/judge.md); never a key itself, but the name of its "
        "environment variable",
    )
    max_requests: Count | None = Field(
        None, description="requests to an endpoint at most; a rerun goes on where this one stopped"
    )
    max_cost: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="what the requests may cost at most, by the prices of --set prices=FILE",
    )
    send_texts: bool = Field(
        False, description="send texts to an endpoint though they are pseudonymised or marked private"
    )


class StudySettings(Settings):
    """What a study does."""

    responses: Natural = Field(200, description="true responses to attack, 0 for all of the test split")
    seed: Seed = Field(0, description="seed of every draw")


class PipelineSettings(TableSettings):
    """What a whole run does besides landing its dump."""

    margin: Margins = Field(
        Margins(),
        description="MEASURE=VALUE: how much worse than the version in use a promoted version may be: in "
        "identification (share of negatives that the true response is above, default 0.01) and in agreement "
        "(Spearman with human scores, default 0.05)",
    )
