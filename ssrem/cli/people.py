"""`ssrem correlate`, `study` and `validate`: how far evaluators agree with people, and what their scores depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from ssrem import tasks
from ssrem.cli import UsageError, output
from ssrem.cli.options import Call, DryRun, EvaluatorName, SetFile, StageCall, Verb, checked_by
from ssrem.errors import AnnotationError, counted, printable, say
from ssrem.readers.paths import MEMBERS
from ssrem.registry import did_you_mean
from ssrem.settings import Natural, Share, pairs
from ssrem.tasks.settings import AgreementSettings, AnnotatedSets, AskingSettings, SetLayout, StudySettings
from ssrem.validation import REQUIRABLE

if TYPE_CHECKING:
    from ssrem.samples import Sample
    from ssrem.studies.estimates import Estimate
    from ssrem.validation.passing import LabelledSet
    from ssrem.validation.validation import Judged, Validation


def _requirable(required: dict[str, float]) -> dict[str, float]:
    for name, value in required.items():
        if name not in REQUIRABLE:
            near = did_you_mean(name, REQUIRABLE)
            raise ValueError(f"there is no measure {name!r}{near}; the measures are {', '.join(REQUIRABLE)}")
        if not -1 <= value <= 1:
            raise ValueError(f"{name}={value} is no number from -1 to 1")
    return required


Required = Annotated[dict[str, float], BeforeValidator(pairs), AfterValidator(_requirable)]


@Verb
def correlate(
    call: StageCall,
    file: tuple[SetFile, ...],
    *,
    sets: AnnotatedSets,
    evaluator: tuple[EvaluatorName, ...] = (),
    agreement: AgreementSettings,
    asking: AskingSettings,
    dry_run: DryRun = False,
) -> None:
    """Correlate scores with human scores.

    file: annotated sets: files or names of pulled sets
    evaluator: evaluators, trained or not (default: those in use here, or else the best that is installed)
    """
    from ssrem.evaluators import BASELINES

    names = tasks.versions.to_correlate(call.home, evaluator)
    own, client = tasks.endpoints.split_settings(evaluator or names, asking)  # added baselines get no setting
    read = tasks.annotated.annotated_files(call.home, file, sets.layout, sets.map)
    if dry_run:
        asking_ones = {
            name: tasks.endpoints.connected(tasks.versions.created(call.home, name, own.get(name)), call.home)
            for name in names
            if tasks.endpoints.may_ask(name)
        }
        samples = {one.name: [row.sample for row in one.read.rows] for one in read}
        asked = product(samples.items(), asking_ones.items())
        rows = [tasks.endpoints.dry_run_row(name, one, some, of) for (of, some), (name, one) in asked]
        output.requests(call, rows)
        return
    best, line = tasks.versions.best_line(call.home)
    new = not evaluator and best in names and tasks.versions.unregistered(call.home, [best])
    chosen = tasks.versions.registered(call.root, names, own, resources=call.resources)
    if new:
        say(f"correlating {line}")
    if beside := [name for name in names if name in BASELINES and name not in evaluator]:
        say(f"also correlated, untrained: {' and '.join(beside)}")
    done = tasks.correlate.correlate_files(
        file, chosen, call.root, sets, agreement, client=client, resources=call.resources
    )
    output.outcome(call, ["pairs", "agreement", "best"], output.done(done, "correlated"), done)


def check_set(file: str) -> None:
    """Raise AnnotationError if `file` is neither an existing path nor the name of a public set."""
    if not Path(file).exists():
        from ssrem.annotated_sets.known import known_set

        known_set(file)


@Verb
def study(
    call: StageCall,
    study: Annotated[str, checked_by("ssrem.studies:check_name")],
    *,
    of: tuple[str, ...] = (),
    evaluator: tuple[EvaluatorName, ...] = (),
    settings: StudySettings,
    asking: AskingSettings,
) -> None:
    """Study the evaluators in use, and print the figures.

    study: behaviour, of pairs that come with ssrem; attacks or injection, of a corpus; length or distribution, of the
        scores of an annotated set; low-resource, leave-one-system-out or transfer, where evaluators learn from its
        human scores
    of: corpora or annotated sets (default: all that the study is for)
    evaluator: evaluators, trained or not (default: those in use here, without baselines)
    """
    stage = tasks.study
    names = tasks.versions.to_study(call.home, evaluator)
    own, client = tasks.endpoints.split_settings(names, asking)
    datasets = of or stage.datasets_of(call.root, study)  # an error comes before an evaluator is registered
    chosen = tasks.versions.registered(call.root, names, own, resources=call.resources)
    for dataset in datasets:
        stage.study(dataset, study, chosen, call.root, settings, client=client, resources=call.resources)
    rows = tasks.query.summary(call.home, ["studies"]).get("studies", [])
    now = {"study": [study], "dataset": datasets, "evaluator": names}
    rows = [row for row in rows if all(row[column] in of for column, of in now.items())]
    if output.answered(call, {"studies": rows}):
        return
    for dataset in datasets:
        of_dataset = [row for row in rows if row["dataset"] == dataset]
        shown = [{k: v for k, v in row.items() if k not in ("study", "dataset")} for row in of_dataset]
        output.tables({f"{study} of {printable(dataset)}": shown})


@Verb
def validate(
    call: Call,
    file: SetFile,
    *,
    sets: SetLayout,
    criterion: str | None = None,
    evaluator: EvaluatorName | None = None,
    pass_: float | None = None,
    precision: Share | None = None,
    scores: str | None = None,
    unlabelled: str | None = None,
    responses: Natural = 50,
    own: tuple[str, ...] = (),
    require: Required = {},  # noqa: B006
    output_: Path | None = None,
    asking: AskingSettings,
    dry_run: DryRun = False,
) -> int:
    """Validate an evaluator, write the page, print a summary; the exit status is 1 if a requirement is not met.

    file: labelled responses: a file or a set of ssrem ratings pull
    criterion: which labels (default: overall, or the only ones)
    evaluator: if it was not trained in this home folder, the packaged one (default: the best that is packaged and
        installed)
    pass_: human score from which a response passes (default: the higher of labels of two values)
    precision: precision that a threshold of the evaluator is to have, 0 to 1
    scores: column with scores that the file has already, such as a judge's verdicts: they are validated instead of
        --evaluator, and from rows without a label the page estimates the share that passes
    unlabelled: unlabelled responses: the page estimates the share that passes, with the error rates on the labels
    responses: good responses to change, to see how far that moves their scores
    own: systems of the labels that are of the evaluator's own model family
    require: MEASURE=VALUE: exit status 1 unless the measure reaches the value: at least for spearman, pearson, kendall,
        low (end of spearman's interval), precision and tpr, at most for fpr and copied
    output_: page to write (default: NAME-validation.html, here)
    """
    from ssrem.cli.score import scoring
    from ssrem.evaluators import evaluator_class, usable_baselines
    from ssrem.evaluators.learning import left_out
    from ssrem.tasks.warehouse.home import utc_now
    from ssrem.validation import passing, validation

    (source,) = tasks.annotated.annotated_files(call.home, [file], sets.layout, sets.map)
    source.say_how_read()
    data = passing.labelled_set(source.read.rows, criterion, pass_)
    if precision and data.passed is None:
        raise AnnotationError(f"--precision needs labels that pass and fail responses: {data.one_class}")
    if unknown := sorted(set(own) - set(data.systems)):
        known = ", ".join(sorted(filter(None, set(data.systems)))) or "none"
        raise AnnotationError(f"--own {unknown[0]}: {file} has no such system; it has {known}")
    if scores and (evaluator or unlabelled or dry_run or asking.set or asking.max_requests):
        raise UsageError(
            "--scores takes what the file has; leave out --evaluator, --set, --unlabelled, --dry-run, --max-requests"
        )
    if scores and not source.read.mapped:
        raise UsageError(
            f"--scores names a column, and {file} is read as {source.read.layout}, which has none; "
            "give --layout jsonl --map score=annotations.NAME, or a table"
        )
    others = _unlabelled(unlabelled, sets.map) if unlabelled else []
    target = output_ or Path(f"{source.name}-validation.html")
    output.check(target, file, unlabelled)  # before the scoring, which may take long

    def validated(judged: Judged) -> Validation:
        compared = {
            one: judged.scores if one == judged.name else evaluator_class(one)().score(data.samples)
            for one in usable_baselines()
        }
        return validation.validate(data, judged, compared, precision=precision, own=own, changed=responses)

    if scores:
        say(f"{file}: validating the scores in {scores!r}")
        judged = _given(call, file, sets, scores, source.read.scores, data)
        result = validated(judged)
    else:
        with scoring(call, evaluator, asking, f"validating {{}} on {file}") as (name, scorer, line):
            if dry_run:
                samples = [*data.samples, *others, *validation.samples_to_change(data, responses)]
                output.requests(call, [tasks.endpoints.dry_run_row(name, scorer, samples, source.name)])
                return 0
            if line:
                say(f"validating {line}")
            in_use = [row for row in tasks.versions.versions(call.home, name) if row["promoted"]]
            tasks.versions.check_not_learned_from(in_use, {source.name: source.contexts})
            # Scored in one call, since whether references count depends on how many responses have one.
            labelled, scored = len(data.samples), scorer.components([*data.samples, *others])
            for note in left_out(scored.reasons[:labelled].tolist()):
                say(note)
            for note in left_out(scored.reasons[labelled:].tolist()):
                say(f"unlabelled: {note}")
            judged = validation.Judged(
                scorer.name,
                scorer.signature,
                scored.score[:labelled],
                passing.Unlabelled(scored.score[labelled:], [one.context for one in others])
                if others
                else None,
                scorer.score if "f" in scorer.parts else validation.BY_REFERENCE,
                validation.preferences(scorer, data.samples),
            )
            result = validated(judged)
    text = validation.render(
        result,
        dataset=source.name,
        data=data,
        scores=judged.scores,
        required=require,
        generated_at=f"{utc_now():%Y-%m-%d %H:%M} UTC",
    )
    output.write(target, text)
    verdict, missed = validation.verdict(result), validation.unmet(result, require)
    answer = {"verdict": verdict, **asdict(result), "not_met": missed, "page": str(target)}
    if not output.answered(call, answer):
        _show(result, verdict, target)
    if missed:
        say(f"not met: {'; '.join(missed)}")
    return 1 if missed else 0


def _given(
    call: Call,
    file: str,
    sets: SetLayout,
    column: str,
    labels: Mapping[str, Sequence[str]],
    data: LabelledSet,
) -> Judged:
    """The scores in a column of the file with the labels. labels: criterion → its columns; UsageError if the column is
    one of them.

    The labels stay columns of scores, since one called `annotator` would now be taken for that of raters. A list of
    raters is of the labels.
    """
    from ssrem.annotated_sets.base import UNRATED
    from ssrem.validation import passing, validation

    if any(column in of for of in labels.values()):
        raise UsageError(
            f"--scores {column}: the labels are read from this column, too; say which one has the labels of people "
            "with --map score=COLUMN"
        )
    fields = {name: of for name, of in (sets.map or {}).items() if name.partition(".")[0] != "score"}
    if MEMBERS in fields.get("rater", "").split("."):
        del fields["rater"]
    fields |= {f"score.{name}": "+".join(of) for name, of in labels.items()}
    fields[f"score.{column}" if labels else "score"] = column
    read = tasks.annotated.annotated_file(call.home, file, sets.layout, fields).read
    if neither := read.left_out.get(UNRATED):
        say(f"left out: {counted(neither, 'response')} with neither a label nor such a score")
    given = passing.given_scores(data, read.rows, column)
    return validation.Judged(column, f"column {column}", *given, validation.GIVEN)


def _unlabelled(file: str, mapping: dict[str, str] | None) -> list[Sample]:
    """The responses of a file with the same columns as the labels; prints how many rows are left out, and why."""
    from ssrem.responses import FIELDS, read_responses

    own = {field: of for field, of in (mapping or {}).items() if field in FIELDS}
    rows = read_responses(file, None, own).rows
    if faults := [row for row in rows if row.sample is None]:
        first = f"{faults[0].where}: {faults[0].fault}"
        say(f"{file}: {len(faults):,} of {len(rows):,} rows are left out; the first: {first}")
    return [row.sample for row in rows if row.sample is not None]


def _show(result: Validation, verdict: str, page: Path) -> None:
    """Print the figures that the verdict rests on; the page has all of them."""
    from ssrem.report.text import interval, real

    def shown(one: Estimate) -> str:
        return f"{real(one.value)} {interval(one.low, one.high)}".strip()

    agreement = [
        {"evaluator": of} | {name: shown(one) for name, one in by.items()}
        for of, by in result.agreement.items()
    ]
    rater = {"evaluator": "one rater with the others", "spearman": real(result.rater.value)}
    thresholds = [
        {"aim": one.aim, "passes from": one.score}
        | {name: shown(getattr(one, name)) for name in ("tpr", "fpr", "precision")}
        for one in result.passing.thresholds
    ]
    shares = [
        {"of": one.of} | {name: shown(getattr(one, name)) for name in ("evaluator", "corrected", "people")}
        for one in result.passing.shares
    ]
    titled: dict[str, list[dict[str, Any]]] = {
        "agreement with people": [*agreement, rater | {"pearson": None, "kendall": None}],
        "thresholds and their rates": thresholds,
        "share that passes: by the evaluator, corrected for its error rates, by people": shares,
    }
    output.tables({title: rows for title, rows in titled.items() if rows})
    if result.more_labels:
        more = f"{result.more_labels:,} more labels, of responses to {result.more_contexts:,} more contexts"
        print(f"to halve the interval of spearman, collect {more}")
    whys = [f"no threshold for {one.aim}: {one.reason}" for one in result.passing.thresholds if one.reason]
    whys += [f"no thresholds: {result.passing.reason}"] if result.passing.reason else []
    uncorrected = [one for one in result.passing.shares if one.corrected.value is None]
    whys += [f"the share of {one.of}: {one.corrected.reason}" for one in uncorrected]
    output.sentences([*whys, verdict])
    print(f"page: {page}, with bias and the responses")
