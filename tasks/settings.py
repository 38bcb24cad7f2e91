"""The settings of the stages: each model is a group of command-line options, the parameter of a flow, and what the
ledger records of a run. Prefect's page shows them as a form. A field such as `map` is the option `--map`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ssrem.errors import SsremError
from ssrem.settings import (
    Columns,
    Count,
    Memory,
    Natural,
    Pairs,
    Percentage,
    Seed,
    Settings,
    TableSettings,
    pairs,
)


class Resources(Settings):
    """What DuckDB may use."""

    memory_limit: Memory | None = None
    """memory above which DuckDB spills to disk, such as 2GB (default: by stage, 2GB at most)"""
    threads: Count | None = None
    """threads of DuckDB (default: all cores)"""


class DumpSettings(Settings):
    """How a dump is read and landed."""

    format: str | None = None
    """a format that docs/formats.md lists, such as jsonl or slack (default: guessed from the content)"""
    map: Columns | None = None
    """FIELD=COLUMN: which column is which field; FIELD=A+B joins columns to a key"""
    encoding: str | None = None
    """encoding of text, such as cp1252 or shift_jis (default: UTF-8, or UTF-16 by its mark)"""
    time_format: str | None = None
    """how times are written, such as '%d.%m.%Y %H:%M' (default: any common form)"""
    name: str | None = None
    """name of the corpus (default: that of the file, or of the folder of several)"""
    speakers: Literal["auto", "person", "conversation"] = "auto"
    """what an id names: a person, or a seat in one conversation (default: person; ids like seats stop the ingest)"""
    not_people: tuple[str, ...] = ()
    """further speakers that are no people, such as AutoModerator: their turns are context only; none turns off the list
    of bots that the format has"""
    max_quarantine: Percentage = 0.05
    """refuse a dump if a larger share of its messages than this cannot land; 100% refuses none (default: 5%)"""
    pseudonymise: bool = False
    """land keyed hashes instead of ids, and mask e-mail addresses, phone numbers and user handles"""
    pseudonym_key: str | None = None
    """file with the key of the pseudonyms, outside the home folder (default: $SSREM_PSEUDONYM_KEY is the key itself)"""
    replace: bool = False
    """land again what has landed, with other options"""


class NegativeSettings(Settings):
    """What determines the negatives of a corpus."""

    split: Literal["train", "valid", "test"] = "train"
    """split of the responses"""
    responses: Natural = 1000
    """true responses to make negatives for, 0 for all"""
    model: str | None = None
    """masked language model of mask-and-fill, a name or folder (default: one fine-tuned here, once)"""
    seed: Seed = 0
    """seed of every draw"""


_SHORTHANDS = {"seed": "seed", "negatives": "negatives", "init": "model", "device": "device"}
"""Option of training → the setting that it is a shorthand for."""


class TrainSettings(Settings):
    """How evaluators learn, and what they learn from besides the corpora."""

    seed: Seed = 0
    """seed of the training"""
    set: Pairs = Field({})
    """KEY=VALUE: settings, such as epochs=10 or reference=embedding-average"""
    negatives: str | None = None
    """negatives to learn from, such as random-1+mask-and-fill"""
    init: str | None = None
    """transformer to start from, a name or folder"""
    device: str | None = None
    """cpu, cuda or mps (default: the best available)"""
    encoder: str | None = None
    """wordllama, word2vec, glove-6b-50d, all-minilm-l6-v2, minilm-mpnet, all-mpnet-base-v2, a vectors file, a
    transformer's folder or hf:NAME, a gensim.downloader name, or A+B (default: each evaluator's own)"""
    labels: tuple[str, ...] = ()
    """annotated sets whose human scores to learn from, too; blends learn from several, tested on each without it"""
    map: Columns | None = None
    """FIELD=COLUMN: which column of a table of --labels is which field, as in ssrem correlate"""
    criterion: str | None = None
    """criterion of --labels to learn (default: overall, or the only one)"""
    labels_only: bool = False
    """learn from the labels, not from the negatives of the corpora"""
    labels_from: Literal["judge"] | None = None
    """learn from the scores that the judge in use gives to responses of the corpora, true and wrong ones"""
    responses: Count | None = None
    """how many responses the judge of --labels-from is asked about; none twice"""
    asking: Pairs = Field({})
    """KEY=VALUE: how that judge is asked: key_env, concurrency, timeout or retries"""
    max_requests: Count | None = None
    """requests to that judge at most; a rerun goes on where this one stopped"""

    @model_validator(mode="after")
    def _check(self) -> TrainSettings:
        if not self.labels and (self.criterion or self.map or (self.labels_only and not self.labels_from)):
            raise SsremError("--criterion, --labels-only and --map need --labels FILE")
        if self.labels_from and not self.responses:
            raise SsremError("--labels-from needs --responses N: how many responses the judge is asked about")
        if not self.labels_from and (self.responses or self.asking or self.max_requests):
            raise SsremError("--responses, --asking and --max-requests need --labels-from judge")
        for option, setting in _SHORTHANDS.items():
            given = getattr(self, option) if option in self.model_fields_set else None
            if given is not None and self.set.get(setting, given) != given:
                raise SsremError(f"--{option} and --set {setting}= say different things; leave one out")
        return self

    @property
    def config(self) -> dict[str, Any]:
        """The settings of evaluators under their own names: `set`, and the options that are shorthands for some."""
        short = {setting: getattr(self, option) for option, setting in _SHORTHANDS.items()}
        return {key: one for key, one in short.items() if one is not None} | self.set


class Margins(Settings):
    """By how much a challenger may be worse than the champion and still be promoted."""

    identification: float = Field(0.01, ge=0, le=1)
    """how much lower its mean share of negatives that score below the true response may be"""
    agreement: float = Field(0.05, ge=0, le=1)
    """how much lower its Spearman correlation with human scores may be"""


class SetLayout(Settings):
    """How annotated sets are read."""

    layout: str | None = None
    """eval, usr, fed, grade, grade:PART, conture, zhao, dailydialog-plusplus, pairwise, label-studio, csv, tsv, parquet
    or jsonl (default: guessed from the content)"""
    map: Columns | None = None
    """FIELD=COLUMN: which column of an annotated set is which field: context response score criterion rater model
    reference dialogue; score.NAME=A+B for raters' columns; separator=TEXT between turns (default: a line break);
    decimal=, for 3,5"""


class AnnotatedSets(SetLayout):
    """How annotated sets are read and landed."""

    replace: bool = False
    """replace an annotated set of the same name with other content; all evaluators that scored it score it again"""


class AgreementSettings(Settings):
    """How scores are compared with human scores. A field that is None is as in the annotated set's last run."""

    keep_ground_truth: bool | None = None
    """correlate ground-truth responses too (default: as last time, at first left out)"""
    force_systems: bool | None = None
    """system-level figures for fewer than five systems, too: ssrem sql "FROM agreement WHERE forced" shows them
    (default: as last time, at first no)"""
    test: Literal["paired-bootstrap", "perm-both"] | None = None
    """test of the difference between two evaluators, in comparisons and rankings: paired bootstrap over contexts,
    or permutation (default: as last time, at first paired-bootstrap)"""


class AskingSettings(Settings):
    """Settings of evaluators that learn nothing, and how this run queries the endpoints of those that have one."""

    set: Pairs = Field({})
    """KEY=VALUE: settings of an evaluator that learns nothing, such as model=NAME base_url=URL prompt=FILE of judge
    (docs/judge.md); never a key itself, but the name of its environment variable"""
    max_requests: Count | None = None
    """requests to an endpoint at most; a rerun goes on where this one stopped"""


class StudySettings(Settings):
    """What a study does."""

    responses: Natural = 200
    """true responses to attack, 0 for all of the test split"""
    seed: Seed = 0
    """seed of every draw"""


Margin = Annotated[
    Margins,
    BeforeValidator(pairs),
    Field(
        description="MEASURE=VALUE: how much worse than the version in use a promoted version may be: identification "
        "(share of negatives that the true response is above, default 0.01), agreement (Spearman with human scores, "
        "default 0.05)"
    ),
]


class PipelineSettings(TableSettings):
    """What a whole run does besides landing its dump."""

    margin: Margin = Margins()

    @property
    def tables(self) -> TableSettings:
        """The settings of the speaker tables."""
        return TableSettings(**self.model_dump(include=set(TableSettings.model_fields)))

    @property
    def training(self) -> TrainSettings:
        """The settings of trainings. Each evaluator has an encoder of its own, unless one is chosen."""
        chosen = self.encoder if "encoder" in self.model_fields_set else None
        return TrainSettings(seed=self.seed, encoder=chosen)
