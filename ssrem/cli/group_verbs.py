"""The verbs of groups, such as `ssrem evaluators promote`, and their options."""

from __future__ import annotations

from pathlib import Path

from ssrem.cli.options import (
    MARGINS,
    RESOURCES,
    RUNNER,
    SEED,
    WAIT,
    Verbs,
    at_least,
    bound,
    choice,
    flag,
    number,
    several,
    share,
    text,
)

GROUPS = {
    "evaluators": "list evaluators, choose versions, retrain, and move them between home folders",
    "ratings": "collect human ratings, and fetch public annotated sets",
    "home": "prune, repair, back up and restore a home folder",
}

EVALUATOR = text("evaluator NAME", "trained evaluator")

GROUP_VERBS: Verbs = {
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
