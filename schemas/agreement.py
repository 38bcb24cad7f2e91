"""How evaluators agree with people (`agreement`, `correlations`, `overall_scores`, `comparisons`, `rankings`), how
people agree with each other (`rater_agreement`), and what else scores depend on (`studies`)."""

from ssrem.schemas.contract import (
    WHO,
    Between,
    Finite,
    NotEmpty,
    OneOf,
    References,
    Table,
    View,
    at_least,
    columns,
)
from ssrem.schemas.human_ratings import AGGREGATIONS

OUTCOME = OneOf(
    "outcome", ("ok", "constant", "too_few", "too_many", "too_few_systems", "uneven", "degenerate")
)

OVERALL = (
    "h if at least as many responses of the set have an h as have an f, else f, or g if none has an f; ground truth "
    "not counted"
)

AGREEMENT = Table(
    name="agreement",
    grain="One row is one figure of how one score of an evaluator's version agrees with one human score.",
    key=(
        *("evaluator", "version", "dataset", "criterion", "aggregation"),
        *("level", "grouping", "score", "measure"),
    ),
    columns=columns(
        **WHO,
        dataset="VARCHAR: annotated set, or corpus whose conversations carry ratings",
        criterion="VARCHAR: what people were asked",
        aggregation="VARCHAR: how the raters' scores were aggregated; rating: one rating, unchanged",
        level="VARCHAR: segment: of responses; system: of the systems' means; conversation: of the "
        "conversations' means",
        grouping="VARCHAR: pooled: all at once; system, context: mean of the coefficients of each system or "
        "context",
        score="VARCHAR: f, g or h",
        measure="VARCHAR: pearson, spearman, kendall (tau-b), accuracy (pairs ordered as people do, ties "
        "calibrated)",
        statistic="DOUBLE?: the figure: -1 to 1, accuracies 0 to 1",
        p="DOUBLE?: two-sided p-value of no correlation, which assumes independent responses; only pooled and at "
        "system level",
        low="DOUBLE?: lower end of its interval: BCa bootstrap over contexts; conversation: analytic",
        high="DOUBLE?: upper end of its interval",
        confidence="DOUBLE?: share of such intervals that hold the true value",
        n="BIGINT: responses, or conversations, that the figure is computed from",
        missing="BIGINT: responses with a human score but without this score, left out",
        excluded="BIGINT: responses left out as ground truth, or ratings left at their default",
        ground_truth_kept="BOOLEAN: option: whether ground-truth rows are compared too",
        groups="BIGINT: groups that were averaged (pooled: 1); at system level the systems",
        epsilon="DOUBLE?: accuracy: scores that differ by it or less count as tied",
        forced="BOOLEAN: whether there were fewer systems than should be compared",
        resamples="BIGINT?: bootstrap draws of the interval; null: nothing was drawn",
        seed="BIGINT?: seed of these draws",
        outcome="VARCHAR: ok: there is a figure; otherwise the kind of reason why there is none",
        reason="VARCHAR?: why there is no figure or, where there is one, no interval",
        signature="VARCHAR: what determines the figure: evaluator, weights, set, options, draws and versions",
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("aggregation", (*AGGREGATIONS, "rating")),
        OneOf("level", ("segment", "system", "conversation")),
        OneOf("grouping", ("pooled", "system", "context")),
        OneOf("score", ("f", "g", "h")),
        OneOf("measure", ("pearson", "spearman", "kendall", "accuracy")),
        OUTCOME,
        Between("statistic", -1, 1),
        Between("p", 0, 1),
        Between("low", -1, 1),
        Between("high", -1, 1),
        Between("confidence", 0, 1),
        *at_least(n=0, missing=0, excluded=0, groups=0, epsilon=0, resamples=1),
        Finite(("statistic", "p", "low", "high", "epsilon")),
    ),
)

CORRELATIONS = View(
    name="correlations",
    grain="One row is the agreement of one score of an evaluator's version with one human score at one level.",
    key=("evaluator", "version", "dataset", "criterion", "aggregation", "level", "score"),
    columns=columns(
        **WHO,
        dataset="VARCHAR: annotated set, or corpus whose conversations carry ratings",
        criterion="VARCHAR: what people were asked",
        aggregation="VARCHAR: how the raters' scores were aggregated; rating: one rating, unchanged",
        level="VARCHAR: segment: responses; system: means of systems, of five or more; conversation: means of "
        "conversations. Figures that were forced with fewer systems are in agreement alone",
        score="VARCHAR: f, g or h",
        **{
            f"{measure}{suffix}": f"DOUBLE?: {what}{name}"
            for measure, name in {
                "pearson": "Pearson's r",
                "spearman": "Spearman's rho",
                "kendall": "tau-b",
            }.items()
            for suffix, what in {
                "": "",
                "_p": "two-sided p of ",
                "_low": "lower end of the 95% interval of ",
                "_high": "upper end of the 95% interval of ",
            }.items()
        },
        n="BIGINT: pairs compared: responses, systems or conversations",
        excluded="BIGINT: responses left out as ground truth, or ratings left at their default",
        outcome="VARCHAR: ok; constant: a side does not vary; too_few: fewer than 3 pairs",
    ),
)

OVERALL_SCORES = View(
    name="overall_scores",
    grain="One row is the score that an evaluator's version gives a rated response: one of its parts f, g and h.",
    key=("evaluator", "version", "dataset", "response_id"),
    columns=columns(
        **WHO,
        dataset="VARCHAR: annotated set",
        response_id="VARCHAR: response",
        part=f"VARCHAR: {OVERALL}",
        score="DOUBLE?: the score",
    ),
)

TESTED = {
    "dataset": "VARCHAR: annotated set",
    "criterion": "VARCHAR: what people were asked",
    "aggregation": "VARCHAR: how the raters' scores were aggregated",
    "level": "VARCHAR: segment: of responses, pooled; system: of the systems' means",
    "test": "VARCHAR: paired-bootstrap: both evaluators on the same resamples of contexts; perm-both: the two "
    "scores of each response are exchanged at random",
    "measure": "VARCHAR: spearman",
}
"""Columns that `comparisons` and `rankings` share: what evaluators were compared on, and how."""

TESTED_VALUES = (
    OneOf("aggregation", AGGREGATIONS),
    OneOf("level", ("segment", "system")),
    OneOf("test", ("paired-bootstrap", "perm-both")),
    OneOf("measure", ("spearman",)),
)

COMPARISONS = Table(
    name="comparisons",
    grain="One row is a pair of evaluators in use, compared on the responses of a set that all of them scored.",
    key=(*TESTED, "first", "first_version", "second", "second_version"),
    columns=columns(
        **TESTED,
        first="VARCHAR: the evaluator that agrees better",
        first_version="BIGINT: its version",
        first_score=f"VARCHAR: its score: {OVERALL}",
        second="VARCHAR: the other evaluator",
        second_version="BIGINT: its version",
        second_score="VARCHAR: its score",
        first_statistic="DOUBLE?: agreement of the first, -1 to 1",
        second_statistic="DOUBLE?: agreement of the second",
        difference="DOUBLE?: first minus second",
        low="DOUBLE?: lower end of the difference's 95% interval (BCa); paired-bootstrap alone",
        high="DOUBLE?: upper end",
        p="DOUBLE?: two-sided p-value of equal agreement, by the test",
        p_holm="DOUBLE?: p corrected for all pairs of the table (Holm)",
        n="BIGINT: responses compared",
        resamples="BIGINT?: bootstrap draws or permutations",
        seed="BIGINT?: seed of these draws",
        outcome="VARCHAR: ok: they were tested; otherwise the kind of reason why not",
        reason="VARCHAR?: why they were not tested",
    ),
    expectations=(
        *TESTED_VALUES,
        References(("first", "first_version"), "evaluators", ("evaluator", "version")),
        References(("second", "second_version"), "evaluators", ("evaluator", "version")),
        OneOf("first_score", ("f", "g", "h")),
        OneOf("second_score", ("f", "g", "h")),
        OUTCOME,
        Between("difference", 0, 2),
        Between("low", -2, 2),
        Between("high", -2, 2),
        Between("p", 0, 1),
        Between("p_holm", 0, 1),
        *at_least(n=0),
        Finite(("first_statistic", "second_statistic", "difference", "low", "high", "p", "p_holm")),
    ),
)

RANKINGS = Table(
    name="rankings",
    grain="One row is an evaluator in use, in its place among all that scored a set.",
    key=(*TESTED, "evaluator", "version"),
    columns=columns(
        **TESTED,
        **WHO,
        score=f"VARCHAR: {OVERALL}",
        statistic="DOUBLE?: its agreement, -1 to 1",
        place="BIGINT?: from 1, best first",
        cluster="BIGINT?: from 1: all of a cluster are significantly better than all below (p_holm < .05)",
        n="BIGINT: responses that every evaluator scored",
        reason="VARCHAR?: why it has no place",
    ),
    expectations=(
        *TESTED_VALUES,
        References(("evaluator", "version"), "evaluators"),
        OneOf("score", ("f", "g", "h")),
        Between("statistic", -1, 1),
        *at_least(place=1, cluster=1, n=0),
        Finite(("statistic",)),
    ),
)

RATER_MEASURES = (
    *("alpha_nominal", "alpha_ordinal", "alpha_interval", "fleiss_kappa", "weighted_kappa"),
    *("one_rater", "attainable"),
)

RATER_AGREEMENT = Table(
    name="rater_agreement",
    grain="One row is one figure of how the raters of an annotated set agree by one criterion.",
    key=("dataset", "criterion", "responses", "outliers", "measure"),
    columns=columns(
        dataset="VARCHAR: annotated set",
        criterion="VARCHAR: what people were asked",
        responses="VARCHAR: compared: those that evaluators are compared on, without ground truth unless it is kept; "
        "all: with it",
        outliers="VARCHAR: kept; removed: without ratings farther from their response's median than one scaled median "
        "absolute deviation (Zhao et al. 2020, appendix A)",
        measure="VARCHAR: alpha_* (Krippendorff), fleiss_kappa, weighted_kappa (Cohen's, quadratic, mean "
        "over pairs of raters), one_rater (Spearman of a rater with the mean of the others: the noise "
        "ceiling), attainable (the highest Spearman that an evaluator can reach with ratings so noisy, from split "
        "halves)",
        value="DOUBLE?: at most 1, which is perfect agreement; 0 is chance",
        raters="BIGINT: raters counted; where they have no names, positions in the responses' lists of scores, "
        "which need not be one person each",
        units="BIGINT: responses counted, rated twice or more",
        ratings="BIGINT: ratings of these responses, after the removal",
        removed="BIGINT: ratings removed as outliers",
        outcome="VARCHAR: ok: there is a value; otherwise the kind of reason why there is none",
        reason="VARCHAR?: why there is none",
    ),
    expectations=(
        OneOf("measure", RATER_MEASURES),
        OneOf("responses", ("compared", "all")),
        OneOf("outliers", ("kept", "removed")),
        OUTCOME,
        Between("value", high=1),
        Finite(("value",)),
        *at_least(raters=0, units=0, ratings=0, removed=0),
    ),
)

STUDIES = Table(
    name="studies",
    grain="One row is one figure of a study of an evaluator's version on a corpus or an annotated set.",
    key=("study", "dataset", "evaluator", "version", "condition", "measure"),
    columns=columns(
        study="VARCHAR: name of the study, such as attacks or length",
        dataset="VARCHAR: corpus whose test split, or annotated set whose scores, are studied; "
        "everyday-pairs: of behaviour",
        **WHO,
        position="BIGINT: position among the study's figures, from 0",
        condition="VARCHAR: what the figure is for, such as an attack",
        measure="VARCHAR: better: share of pairs whose better response scores higher; fooled: share in which the "
        "attack does not score below the true response; spearman; sd, qX: standard deviation and quantiles of scores "
        "brought to [0, 1]; sd_unscaled: in their own units; shift: mean change in standard deviations",
        value="DOUBLE?: the figure",
        n="BIGINT: responses that the figure is computed from",
        outcome="VARCHAR: ok; constant: a side does not vary; too_few: not enough responses",
        low="DOUBLE?: lower end of the figure's 95% interval, where the study gives one",
        high="DOUBLE?: upper end of it",
    ),
    expectations=(
        NotEmpty(),
        References(("evaluator", "version"), "evaluators"),
        OneOf("outcome", ("ok", "constant", "too_few")),
        Finite(("value", "low", "high")),
        *at_least(n=0, position=0),
    ),
)
