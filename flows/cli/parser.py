"""The verbs of the `ssrem` command and their options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.cli.options import (
    ADDRESSEES,
    ASKING,
    CONTEXT_TURNS,
    CORPORA,
    DUMP,
    ENCODER,
    HOME,
    JSON,
    LAYOUT,
    MARGINS,
    PSEUDONYM_KEY,
    RAW,
    RESOURCES,
    RUNNER,
    SEED,
    SIMILARITY,
    SOURCE,
    WAIT,
    Option,
    Parser,
    at_least,
    bound,
    choice,
    either,
    flag,
    number,
    requirement,
    seconds,
    several,
    share,
    text,
)
from ssrem import __version__

EPILOG = """\
examples:
  ssrem run                                          everything, on the corpus that comes with the install
  ssrem run dump.jsonl --annotations human_eval.json everything, on your own
  ssrem sql "SELECT * FROM identification"           query the tables
"""

GROUPS = {
    "evaluators": "list evaluators, choose versions, retrain, and move them between home folders",
    "ratings": "collect human ratings, and fetch public annotated sets",
    "home": "prune, repair, back up and restore a home folder",
}

RENAMED = {
    "agree": "is now ssrem correlate",
    "annotate": "is now ssrem ratings collect (to write a batch) and ssrem ratings import",
    "annotations": "is now ssrem ratings list and ssrem ratings pull",
    "collect": "is now ssrem home prune",
    "backup": "is now ssrem home backup",
    "restore": "is now ssrem home restore",
    "promote": "is now ssrem evaluators promote",
    "rollback": "is now ssrem evaluators rollback",
    "export": "is now ssrem evaluators export",
    "import": "is now ssrem evaluators import",
    "retrain": "is now ssrem evaluators retrain",
    "upgrade": "is gone: with ssrem run, make a home folder of another layout anew from its dumps and ratings",
}
"""Verbs of version 0.1 and what replaced them."""

EVALUATOR = text("evaluator NAME", "trained evaluator")
EVALUATORS = text("--evaluator NAME", "trained evaluators (default: all)", nargs="+")

Verbs = dict[str, tuple[str, *tuple[Option, ...]]]
"""Verb → its help and its options besides --home and --json; a verb of two words belongs to a group."""

STAGES: Verbs = {
    "run": (
        "land, build tables, train, score, correlate and report",
        SOURCE,
        *DUMP,
        text(
            "--annotations FILE",
            "annotated sets: files, folders or pulled sets; fields of --map as in ssrem correlate",
            nargs="+",
            default=[],
        ),
        LAYOUT,
        text("--evaluator NAME", "evaluators to train (default: ssrem rsrem)", nargs="+"),
        SEED,
        CONTEXT_TURNS,
        ADDRESSEES,
        SIMILARITY,
        ENCODER,
        MARGINS,
        *RESOURCES,
        *RUNNER,
    ),
    "ingest": (
        "land a dump of conversations",
        SOURCE,
        *DUMP,
        flag("--replace", "land again what has landed, with other options"),
        flag("--retrain", "then retrain the evaluators that have not seen every landed corpus"),
        text(
            "--inbox FOLDER",
            "land the complete dumps of a folder, and move them to its done/, or to rejected/ with the reason in a "
            "file beside them",
        ),
        text("--settle TIME", "time without a change that completes a dump", type=seconds, default=5),
        text("--watch TIME", "look into --inbox again after so long, until interrupted", type=seconds),
        MARGINS,
        *RESOURCES,
    ),
    "tables": (
        "build the speaker tables of landed corpora",
        CORPORA,
        SEED,
        CONTEXT_TURNS,
        ADDRESSEES,
        SIMILARITY,
        ENCODER,
        *RESOURCES,
        *RUNNER,
    ),
    "negatives": (
        "make negative responses, as a table",
        text(
            "generator SPEC",
            "random-2, sc, sp, ss, mask-and-fill, drop-golden, shuffle-golden, …; A+B for several",
        ),
        CORPORA,
        choice(
            "--split",
            ("train", "valid", "test"),
            "split of the responses (default: %(default)s)",
            default="train",
        ),
        number("--responses", 0, 1000, "true responses to make negatives for, 0 for all"),
        text(
            "--model SPEC",
            "masked language model of mask-and-fill, a name or folder (default: one fine-tuned here, once)",
        ),
        SEED,
        *RESOURCES,
    ),
    "train": (
        "train evaluators, score their test splits, and promote those that are not worse",
        text(
            "evaluator NAME",
            "evaluators (default: ssrem rsrem); or a language model: masked-lm, of mask-and-fill, or lm, of lm-*",
            nargs="*",
        ),
        CORPORA,
        number("--seed", 0, 0, "seed of the training"),
        several("--set KEY=VALUE", "settings, such as epochs=10 or reference=embedding-average"),
        text("--negatives SPEC", "negatives to learn from, such as random-1+mask-and-fill"),
        text("--init MODEL", "transformer to start from, a name or folder"),
        text("--device DEVICE", "cpu, cuda or mps (default: the best available)"),
        several(
            "--labels FILE",
            "annotated set whose human scores to learn from as well; blends learn from several sets at once, and are "
            "tested on each without its scores",
        ),
        text("--criterion NAME", "criterion of --labels to learn (default: overall)"),
        flag("--labels-only", "learn from the human scores, not from the corpora"),
        flag("--dry-run", "show what would be trained on what, and train nothing"),
        ENCODER,
        MARGINS,
        *RESOURCES,
        *RUNNER,
    ),
    "score": (
        "print a score for each response in a file, or for one",
        text(
            "file FILE",
            "responses with their contexts; - for standard input (default: the one of --response)",
            nargs="?",
        ),
        choice(
            "--format",
            ("json", "jsonl", "csv", "tsv", "text", "parquet"),
            "json, a list of objects; jsonl, one a line; csv and tsv with a header; text, a context, a tab and a "
            "response a line; parquet (default: guessed from the content)",
        ),
        several(
            "--map FIELD=COLUMN",
            "which column or key is which field: context response reference id; context=A+B for a turn each; "
            "separator=TEXT between turns (default: a line break)",
        ),
        text("--context TURN", "a turn before --response; repeat it, the oldest first", action="append"),
        text("--response TEXT", "score this response alone"),
        text("--reference TEXT", "true response to compare --response with"),
        text(
            "--evaluator NAME",
            "evaluator; one without a version of its own here comes with ssrem (default: the best that is packaged "
            "and installed)",
        ),
        text("--output FILE", "write there instead of to the terminal"),
        *ASKING,
    ),
    "score-corpus": (
        "score the test split of a corpus, with evaluators that learned from this or another one, and how well they "
        "tell its true responses from false ones",
        CORPORA,
        text(
            "--evaluator NAME",
            "evaluators; one without a version of its own here comes with ssrem (default: all in use)",
            nargs="+",
        ),
        *RESOURCES,
        *RUNNER,
    ),
    "correlate": (
        "correlate scores with human scores",
        text("file FILE", "annotated sets: files, folders or sets of ssrem ratings pull", nargs="+"),
        LAYOUT,
        several(
            "--map FIELD=COLUMN",
            "which column of a table is which field: context response score criterion rater model reference "
            "dialogue; score.NAME=A+B for raters' columns; separator=TEXT between turns (default: a line break)",
        ),
        EVALUATORS,
        flag("--keep-ground-truth", "correlate ground-truth responses too (default: left out)"),
        lambda verb: verb.add_argument(
            "--force-systems",
            action=argparse.BooleanOptionalAction,
            help="figures at system level of fewer than five systems too, flagged as forced (default: as before, "
            "at first none)",
        ),
        choice(
            "--test",
            ("paired-bootstrap", "perm-both", "williams"),
            "test of the difference between two evaluators, in comparisons and rankings: paired bootstrap over "
            "contexts, permutation, or Williams' test (default: as before, at first paired-bootstrap)",
        ),
        number(
            "--permutations",
            0,
            None,
            "p_permuted in agreement: of no correlation, by so many permutations, 0 for none (default: as before, at "
            "first none)",
        ),
        *ASKING,
        *RESOURCES,
        *RUNNER,
    ),
    "study": (
        "confounders: what else the scores depend on",
        text(
            "study NAME",
            "behaviour, of pairs that come with ssrem; attacks, injection, word-classes or corpus-buckets, of a "
            "corpus; length, "
            "buckets, distribution or without-system, of the scores of an annotated set; low-resource, "
            "label-noise, leave-one-system-out or transfer, where evaluators learn from its human scores",
        ),
        text("--of DATASET", "corpora or annotated sets (default: all that the study is for)", nargs="+"),
        EVALUATORS,
        number("--responses", 0, 200, "true responses to attack, 0 for all of the test split"),
        SEED,
        *ASKING,
        *RESOURCES,
    ),
}

QUESTIONS: Verbs = {
    "validate": (
        "tell on one page how far an evaluator can be trusted, by labels that people gave",
        text("file FILE", "labelled responses: a file, a folder or a set of ssrem ratings pull"),
        LAYOUT,
        several("--map FIELD=COLUMN", "which column of a table is which field, as in ssrem correlate"),
        text("--criterion NAME", "which labels (default: overall, or the only ones)"),
        text(
            "--evaluator NAME",
            "evaluator: the version in use, or else as packaged (default: the best that is packaged and installed)",
        ),
        text(
            "--pass SCORE",
            "human score from which a response passes (default: the higher of labels of two values)",
            type=float,
            dest="passed_from",
        ),
        text("--precision SHARE", "precision that a threshold of the evaluator is to have", type=share),
        text(
            "--unlabelled FILE",
            "responses that nobody labelled: the share that passes, corrected by the labels' error rates",
        ),
        number("--responses", 0, 50, "good responses to change, to see how far that moves their scores"),
        text("--own SYSTEM", "systems of the labels that are of the evaluator's own model family", nargs="+"),
        text(
            "--require MEASURE=VALUE",
            "end with exit status 1 unless so: spearman, pearson, kendall, low (end of spearman's interval), precision "
            "and tpr at least, fpr and copied at most",
            nargs="+",
            action="extend",
            default=[],
            type=requirement,
        ),
        text("--output FILE", "page to write (default: NAME-validation.html, here)", type=Path),
        *ASKING,
    ),
    "report": (
        "write the report and print its path",
        flag("--open", "open the page in the browser"),
        either(
            text(
                "--figures FOLDER",
                "write every figure there, too, as SVG, PDF and PNG, and every table as LaTeX, Markdown and CSV",
                type=Path,
            ),
            text(
                "--compare RUN",
                "write a page of the differences between two runs instead: ids in the table runs, or their starts",
                nargs=2,
            ),
        ),
        RAW,
    ),
    "sql": (
        "query the published tables, read-only",
        text(
            "query QUERY",
            "one SELECT; SHOW TABLES lists the tables (default: DuckDB's shell, or the queries of a pipe)",
            nargs="?",
        ),
        text("--csv FILE", "write the answer there as CSV; - for the terminal"),
        text("--parquet FILE", "write the answer there as Parquet"),
        RAW,
    ),
    "status": (
        "show what has landed, how far each corpus is, and what went wrong",
        flag("--deep", "read every published file and compare it with its digest"),
    ),
    "reproduce": (
        "compute a published figure again, and show what differs",
        text("signature SIGNATURE", "of a row of the table agreement"),
    ),
    "forget": (
        "delete a person from every table, run folder and cache",
        text("speaker SPEAKER", "the person's id, as in the dump or in the tables"),
        PSEUDONYM_KEY,
        CORPORA,
        *RESOURCES,
    ),
}

OF_GROUPS: Verbs = {
    "evaluators list": ("list the available evaluators, and the versions trained here",),
    "evaluators promote": (
        "bring a version of an evaluator into use",
        EVALUATOR,
        text("version VERSION", "which of its versions", type=at_least(1)),
        *RESOURCES,
    ),
    "evaluators rollback": ("bring the previous version back into use", EVALUATOR, *RESOURCES),
    "evaluators export": (
        "write a trained evaluator into one file, for another home folder",
        EVALUATOR,
        number("--version", 1, None, "its version (default: the one in use)"),
        text("--output FILE", "file to write (default: NAME-VERSION.ssrem, here)", type=Path),
    ),
    "evaluators import": (
        "add an evaluator that ssrem evaluators export wrote",
        text("archive FILE", "file that ssrem evaluators export wrote"),
        text(
            "--allow SPEC",
            "encoders and models, names or paths, that it may read or download though the file lacks them",
            nargs="+",
        ),
        *RESOURCES,
    ),
    "evaluators retrain": (
        "retrain the evaluators that have not seen every landed corpus",
        text("evaluator NAME", "evaluators (default: all in use)", nargs="*"),
        MARGINS,
        *RESOURCES,
        *RUNNER,
    ),
    "ratings list": ("list the known public annotated sets, with their licences",),
    "ratings pull": (
        "fetch public annotated sets, check them, and show their licences; ssrem correlate takes them by name",
        text("name NAME", "sets that ssrem ratings list shows", nargs="+"),
        text(
            "--to DIR",
            "folder for the files (default: annotated-sets in the home folder, where names are looked up)",
            type=Path,
        ),
    ),
    "ratings collect": (
        "draw a batch of responses, and write the page and tables that raters fill in, and the key that you keep",
        text("folder FOLDER", "new folder of the batch", type=Path),
        text("--corpus NAME", "corpus (default: the only one that has landed)"),
        choice(
            "--split",
            ("valid", "test"),
            "split of the contexts; bm25 answers them from the training split (default: %(default)s)",
            default="test",
        ),
        several(
            "--responses NAME=FILE",
            "a system and its responses, a JSON list or one object a line with context and response; contexts are "
            "drawn from those that every file answers",
        ),
        flag("--without-bm25", "no retrieved responses"),
        number("--contexts", 1, 24, "contexts, each rated with every system's response"),
        number("--raters", 1, 3, "raters, each with a sheet"),
        number("--redundancy", 1, 3, "raters of each response"),
        number("--checks", 0, 4, "attention checks of each rater"),
        SEED,
        text("--criterion NAME", "what is rated", default="overall"),
        text(
            "--question TEXT",
            "question to the raters",
            default="How well does the response fit the conversation?",
        ),
        text(
            "--scale N",
            "highest score, 2 to 9; 1 is the lowest",
            type=int,
            choices=range(2, 10),
            default=5,
        ),
        flag(
            "--on-topic",
            'ask a second question, "How on-topic is the response?", whose answers are the criterion on-topic',
        ),
    ),
    "ratings import": (
        "read raters' answers, leave out careless raters, report agreement, and write an annotated set",
        text("answers ANSWERS", "files that raters saved, JSON or CSV", nargs="+", type=Path),
        text("--batch FOLDER", "folder that ssrem ratings collect wrote", required=True, type=Path),
        text(
            "--checks-passed SHARE",
            "leave out raters who passed a smaller share of their attention checks",
            type=share,
            default=1.0,
        ),
        text(
            "--kappa BOUND",
            "leave out raters whose mean quadratic kappa with the others is below, -1 to 1, or none",
            type=bound,
            default=0.2,
        ),
        text("--output FILE", "annotated set to write (default: FOLDER/BATCH_eval.json)", type=Path),
        flag("--correlate", "then correlate trained evaluators with it"),
        *RESOURCES,
        *RUNNER,
    ),
    "home prune": (
        "delete the files that no snapshot needs any more",
        number("--keep-runs", 0, 5, "unused run folders to keep"),
        number("--keep-failures", 0, 20, "failed runs whose rows to keep"),
        WAIT,
    ),
    "home repair": ("repair damaged tables", WAIT),
    "home backup": (
        "copy the published snapshot, with its models, while others read and write",
        text("target FILE_OR_FOLDER", "a new .tar, .tar.gz or .tgz file, or folder"),
    ),
    "home restore": (
        "put a backup into a new or empty home folder",
        text(
            "source FILE_OR_FOLDER",
            "what ssrem home backup wrote, or the home folder itself after a move",
        ),
        WAIT,
    ),
}

VERBS: Verbs = {**STAGES, **QUESTIONS, **OF_GROUPS}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command, and its `verb`. Ends the process, with one line, if they are wrong."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] in RENAMED:
        parser().error(f"ssrem {arguments[0]} {RENAMED[arguments[0]]}")
    if arguments == ["evaluators"] or (
        arguments[:1] == ["evaluators"] and arguments[1] in ("--home", "--json")
    ):
        arguments.insert(1, "list")
    return parser().parse_args(arguments)


def parser() -> Parser:
    """The parser of all verbs."""
    top = Parser(
        prog="ssrem",
        description="Learns from people's own conversations to tell good dialogue responses from bad ones.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"ssrem {__version__}")
    verbs = {"": _verbs(top)}
    for name, (help, *options) in VERBS.items():
        group, _, word = name.rpartition(" ")
        if group not in verbs:
            verbs[group] = _verbs(verbs[""].add_parser(group, help=GROUPS[group], description=GROUPS[group]))
        verb = verbs[group].add_parser(word, help=help, description=help)
        verb.set_defaults(verb=name)
        for add in (HOME, JSON, *options):
            add(verb)
    return top


def _verbs(parser: argparse.ArgumentParser) -> Any:
    return parser.add_subparsers(title="verbs", required=True, metavar="VERB", parser_class=Parser)
