"""`evaluators`, the `learning_curves` of their training, their `scores`, and `identification`: how well they tell
the true response from each kind of negative (Bak and Oh 2020, section 6)."""

from ssrem.schemas.contract import (
    WHO,
    Between,
    Finite,
    OneOf,
    References,
    Table,
    WithinBounds,
    at_least,
    columns,
)

EVALUATORS = Table(
    name="evaluators",
    grain="One row is a version of an evaluator: trained, or registered if it has nothing to learn.",
    key=("evaluator", "version"),
    columns=columns(
        evaluator="VARCHAR: name of the evaluator, such as ssrem",
        version="BIGINT: number of the version in this home folder, from 1",
        signature="VARCHAR: settings, encoder and hash of the weights, which together reproduce its scores",
        low="DOUBLE?: lower bound of its scores; null: none",
        high="DOUBLE?: upper bound of its scores; null: none",
        encoder="VARCHAR?: signature of the encoder; null: it uses none",
        config="VARCHAR: JSON object: settings",
        corpora="VARCHAR: JSON object: corpus it was trained on to its sha256",
        labels="VARCHAR?: sha256 of the annotated sets whose ratings it learned from, joined by +; null: none",
        labelled="VARCHAR[]?: hashes of the contexts whose ratings it learned from; null: none",
        train_responses="BIGINT: responses of the training split that it learned from",
        valid_responses="BIGINT: responses of the validation split, used for early stopping",
        test_responses="BIGINT: responses of the test split, not used in training",
        test_sample="BIGINT?: number of responses of a corpus's test split that are scored; null: all",
        valid_loss="DOUBLE?: loss on the validation split; null if it has nothing to learn",
        best_epoch="BIGINT?: epoch whose weights it has; 0: the initial ones",
        epochs="BIGINT: epochs run, without epoch 0",
        seconds="DOUBLE: wall time of the training",
        promoted="BOOLEAN: whether this is the default version of the evaluator",
        why="VARCHAR: reason why it is promoted or not",
        compared_with="BIGINT?: version promoted at the time, with which this one was compared; null: there "
        "was none",
        comparison="VARCHAR?: JSON list: an object for the test splits together (dataset: the corpus, or "
        "how many) and for each annotated set: dataset, measure, champion, challenger, difference, low (5% quantile of "
        "its paired bootstrap), margin, n, groups, not_worse, outcome (ok, or why it was not compared)",
        trained_at="TIMESTAMP: end of the training, UTC",
        decided_at="TIMESTAMP?: time of the decision on its promotion, UTC; null: not decided yet",
        promoted_at="TIMESTAMP?: time of its last promotion, UTC; null: never promoted",
    ),
    expectations=tuple(at_least(version=1, train_responses=0, valid_loss=0, best_epoch=0, seconds=0)),
)

LEARNING_CURVES = Table(
    name="learning_curves",
    grain="One row is the mean loss of an epoch of a training on one split.",
    key=("evaluator", "version", "epoch", "split"),
    columns=columns(
        **WHO,
        epoch="BIGINT: number of the epoch, from 1; 0: before training",
        split="VARCHAR: train or valid",
        loss="DOUBLE: mean loss per response, by the evaluator's own loss function",
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("split", ("train", "valid")),
        *at_least(epoch=0),
        Finite(("loss",)),
    ),
)

SCORES = Table(
    name="scores",
    grain="One row is the score that a version of an evaluator gives to one response or candidate.",
    key=("evaluator", "version", "dataset", "response_id", "kind", "k"),
    columns=columns(
        **WHO,
        dataset="VARCHAR: annotated set, or corpus whose test split was scored",
        learned_from="VARCHAR: corpora that the evaluator learned from, with commas between; empty: none",
        response_id="VARCHAR: response in that dataset",
        kind="VARCHAR: response: of an annotated set; GT, SC, SP, SS, Rand: candidate; Context: the last "
        "turn, copied",
        k="BIGINT: number of the candidate of that kind, from 0",
        f="DOUBLE?: score of the response given the context; null if the evaluator has no such part, or one of "
        "the two is empty",
        g="DOUBLE?: score of the response given the reference; null without a reference",
        f_unit="DOUBLE?: f scaled to [0, 1]; null if it is not scaled",
        g_unit="DOUBLE?: g scaled to [0, 1]",
        h="DOUBLE?: f_unit and g_unit combined; null if either is missing",
        truncated="BOOLEAN: whether the evaluator cut off some of the text",
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("kind", ("response", "GT", "SC", "SP", "SS", "Rand", "Context")),
        Finite(("f", "g", "f_unit", "g_unit", "h")),
        WithinBounds(("f", "g", "h")),
        Between("f_unit", 0, 1),
        Between("g_unit", 0, 1),
    ),
)

JUDGMENTS = Table(
    name="judgments",
    grain="One row is one answer of an endpoint that a version of a judge was given about one response.",
    key=("evaluator", "version", "dataset", "response_id", "request", "order_no"),
    columns=columns(
        **WHO,
        dataset="VARCHAR: annotated set",
        response_id="VARCHAR: response in that set",
        order_no="BIGINT: 0; 1: response and reference stood in each other's place",
        prompt="VARCHAR: criterion of the prompt, and a hash of all that it says",
        request="VARCHAR: hash of all that the answer depends on: prompt, endpoint, settings and texts. Judges that "
        "are parts of one blend differ in it",
        model="VARCHAR: the model as the endpoint named it",
        fingerprint="VARCHAR?: system fingerprint that the endpoint gave",
        answer="VARCHAR: the answer, raw",
        score="DOUBLE?: the score that the answer gives, on the prompt's scale; null with a reason",
        reason="VARCHAR?: why the answer gives no score: refused, no number, outside the scale, cut off by "
        "max_tokens",
        method="VARCHAR: expected: mean over the scale's tokens; number: the number of the answer",
        prompt_tokens="BIGINT?: tokens of the request; null if the endpoint does not say",
        completion_tokens="BIGINT?: tokens of the answer",
        seconds="DOUBLE: from the request to the answer, with all tries",
        asked_at="TIMESTAMP: when the answer came, UTC",
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        References(("dataset", "response_id"), "rated_responses"),
        OneOf("reason", ("refused", "no number", "outside the scale", "cut off by max_tokens")),
        OneOf("method", ("expected", "number")),
        Finite(("score", "seconds")),
        WithinBounds(("score",)),
        *at_least(order_no=0, prompt_tokens=0, completion_tokens=0, seconds=0),
    ),
)

IDENTIFICATION = Table(
    name="identification",
    grain="One row is a kind of candidate of a corpus's test split under one version of an evaluator.",
    key=("evaluator", "version", "corpus", "kind"),
    columns=columns(
        **WHO,
        corpus="VARCHAR: corpus whose test split was scored",
        learned_from="VARCHAR: corpora that the evaluator learned from, with commas between; empty: none. "
        "Without this corpus among them, the figures are of another corpus's model",
        kind="VARCHAR: GT, SC, SP, SS, Rand, or Context: the last turn copied as the response",
        mean="DOUBLE?: mean f",
        low="DOUBLE?: lower end of its 95% confidence interval",
        high="DOUBLE?: upper end of its 95% confidence interval",
        gt_above="DOUBLE?: share of candidates of this kind that score below the true response, ties a half",
        n="BIGINT: responses that have a candidate of this kind",
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("kind", ("GT", "SC", "SP", "SS", "Rand", "Context")),
        Finite(("mean", "low", "high", "gt_above")),
        WithinBounds(("mean",)),
        Between("gt_above", 0, 1),
        *at_least(n=0),
    ),
)
