"""The verbs of one word, such as `ssrem train`, and their options."""

from __future__ import annotations

import argparse
from pathlib import Path

from ssrem.cli.options import (
    ADDRESSEES,
    ASKING,
    CONTEXT_TURNS,
    CORPORA,
    DUMP,
    ENCODER,
    LAYOUT,
    MARGINS,
    PSEUDONYM_KEY,
    RAW,
    RESOURCES,
    RUNNER,
    SEED,
    SIMILARITY,
    SOURCE,
    Verbs,
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

EVALUATORS = text("--evaluator NAME", "trained evaluators (default: all)", nargs="+")

SINGLE_VERBS: Verbs = {
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
        text("--settle TIME", "a dump is complete after so long without a change", type=seconds, default=5),
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
        several(
            "--map FIELD=COLUMN", "which column of a table of --labels is which field, as in ssrem correlate"
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
        "score the test split of a corpus with evaluators that learned from it or from another, and measure how well "
        "they tell true responses from false ones",
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
        flag(
            "--replace",
            "replace a set of the same name with other content; all evaluators that scored it score it again",
        ),
        EVALUATORS,
        flag("--keep-ground-truth", "correlate ground-truth responses too (default: left out)"),
        lambda verb: verb.add_argument(
            "--force-systems",
            action=argparse.BooleanOptionalAction,
            help="also compute figures at system level for fewer than five systems, flagged as forced (default: as in "
            "the last run, at first no)",
        ),
        choice(
            "--test",
            ("paired-bootstrap", "perm-both", "williams"),
            "test of the difference between two evaluators, in comparisons and rankings: paired bootstrap over "
            "contexts, permutation, or Williams' test (default: as in the last run, at first paired-bootstrap)",
        ),
        number(
            "--permutations",
            0,
            None,
            "permutations of the test of no correlation, p_permuted in the table agreement; 0 for no test (default: as "
            "in the last run, at first none)",
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
            "corpus; length, buckets, distribution or without-system, of the scores of an annotated set; "
            "low-resource, label-noise, leave-one-system-out or transfer, where evaluators learn from its human scores",
        ),
        text("--of DATASET", "corpora or annotated sets (default: all that the study is for)", nargs="+"),
        EVALUATORS,
        number("--responses", 0, 200, "true responses to attack, 0 for all of the test split"),
        SEED,
        *ASKING,
        *RESOURCES,
    ),
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
            "unlabelled responses: the page estimates the share that passes, with the error rates on the labels",
        ),
        number("--responses", 0, 50, "good responses to change, to see how far that moves their scores"),
        text("--own SYSTEM", "systems of the labels that are of the evaluator's own model family", nargs="+"),
        text(
            "--require MEASURE=VALUE",
            "exit status 1 unless the measure reaches the value: at least for spearman, pearson, kendall, low (end of "
            "spearman's interval), precision and tpr, at most for fpr and copied",
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
