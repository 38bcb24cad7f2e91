"""The layout of homes that ssrem 0.1.0 made; their catalogs do not say it themselves, later ones do."""

from __future__ import annotations

from schemas.layouts import Shape

NAME = "1-a246dc5f"

_TABLES = {
    "corpora": (
        "corpus",
        "corpus",
        "corpus VARCHAR, format VARCHAR, source VARCHAR, sha256 VARCHAR, bytes BIGINT, messages_read "
        "BIGINT, utterances BIGINT, quarantined BIGINT, conversations BIGINT, speakers BIGINT, "
        "time_backwards BIGINT, speaker_scope VARCHAR, landed_at TIMESTAMP",
    ),
    "conversations": (
        "corpus",
        "corpus conversation_id",
        "corpus VARCHAR, conversation_id VARCHAR, conversation_no BIGINT, started TIMESTAMP, messages "
        "BIGINT, participants BIGINT, ratings VARCHAR, metadata VARCHAR",
    ),
    "utterances": (
        "corpus",
        "corpus utterance_id",
        "corpus VARCHAR, utterance_id VARCHAR, conversation_id VARCHAR, conversation_no BIGINT, "
        "position BIGINT, turn BIGINT, speaker VARCHAR, addressee VARCHAR, reply_to VARCHAR, text "
        "VARCHAR, time TIMESTAMP, time_backwards BOOLEAN, metadata VARCHAR",
    ),
    "quarantine": (
        "corpus",
        "corpus row_no",
        "corpus VARCHAR, row_no BIGINT, record VARCHAR, file VARCHAR, line BIGINT, reason VARCHAR, raw BLOB",
    ),
    "turns": (
        "corpus",
        "corpus turn_id",
        "corpus VARCHAR, turn_id BIGINT, conversation_id VARCHAR, turn BIGINT, speaker VARCHAR, "
        "addressee VARCHAR, text VARCHAR, text_hash UBIGINT, messages BIGINT, started TIMESTAMP, "
        "split VARCHAR",
    ),
    "responses": (
        "corpus",
        "corpus response_id",
        "corpus VARCHAR, response_id BIGINT, context_from BIGINT, context_to BIGINT, conversation_id "
        "VARCHAR, speaker VARCHAR, addressee VARCHAR, split VARCHAR",
    ),
    "sc": (
        "corpus",
        "corpus set_id position",
        "corpus VARCHAR, set_id BIGINT, position BIGINT, size BIGINT, turn_id BIGINT",
    ),
    "sp": (
        "corpus",
        "corpus set_id position",
        "corpus VARCHAR, set_id BIGINT, position BIGINT, size BIGINT, turn_id BIGINT",
    ),
    "ss": (
        "corpus",
        "corpus set_id position",
        "corpus VARCHAR, set_id BIGINT, position BIGINT, size BIGINT, turn_id BIGINT",
    ),
    "rand": (
        "corpus",
        "corpus set_id position",
        "corpus VARCHAR, set_id BIGINT, position BIGINT, size BIGINT, turn_id BIGINT",
    ),
    "candidates": (
        "corpus",
        "corpus response_id kind k",
        "corpus VARCHAR, response_id BIGINT, kind VARCHAR, k BIGINT, turn_id BIGINT",
    ),
    "negatives": (
        "corpus and generator",
        "corpus response_id generator k",
        "corpus VARCHAR, response_id BIGINT, generator VARCHAR, k BIGINT, text VARCHAR, replaced "
        "BIGINT, tokens BIGINT, truncated BOOLEAN",
    ),
    "set_similarity": (
        "corpus",
        "corpus kind",
        "corpus VARCHAR, kind VARCHAR, mean DOUBLE, low DOUBLE, high DOUBLE, speakers BIGINT, sets "
        "BIGINT, pairs BIGINT, encoder VARCHAR",
    ),
    "evaluators": (
        "evaluator and version",
        "evaluator version",
        "evaluator VARCHAR, version BIGINT, signature VARCHAR, low DOUBLE, high DOUBLE, encoder "
        "VARCHAR, config VARCHAR, corpora VARCHAR, train_responses BIGINT, valid_responses BIGINT, "
        "test_responses BIGINT, test_sample BIGINT, valid_loss DOUBLE, best_epoch BIGINT, epochs "
        "BIGINT, seconds DOUBLE, promoted BOOLEAN, why VARCHAR, trained_at TIMESTAMP",
    ),
    "learning_curves": (
        "evaluator and version",
        "evaluator version epoch split",
        "evaluator VARCHAR, version BIGINT, epoch BIGINT, split VARCHAR, loss DOUBLE",
    ),
    "scores": (
        "evaluator, version and dataset",
        "evaluator version dataset response_id kind k",
        "evaluator VARCHAR, version BIGINT, dataset VARCHAR, response_id VARCHAR, kind VARCHAR, k "
        "BIGINT, f DOUBLE, g DOUBLE, f_unit DOUBLE, g_unit DOUBLE, h DOUBLE, truncated BOOLEAN",
    ),
    "identification": (
        "evaluator, version and corpus",
        "evaluator version corpus kind",
        "evaluator VARCHAR, version BIGINT, corpus VARCHAR, kind VARCHAR, mean DOUBLE, low DOUBLE, "
        "high DOUBLE, gt_above DOUBLE, n BIGINT",
    ),
    "annotated": (
        "dataset",
        "dataset response_id",
        "dataset VARCHAR, sha256 VARCHAR, response_id VARCHAR, dialogue_id VARCHAR, context "
        "VARCHAR[], response VARCHAR, reference VARCHAR, system VARCHAR, ground_truth BOOLEAN",
    ),
    "annotations": (
        "dataset",
        "dataset response_id criterion rater",
        "dataset VARCHAR, response_id VARCHAR, criterion VARCHAR, rater BIGINT, score DOUBLE",
    ),
    "human_scores": (
        "dataset",
        "dataset response_id criterion aggregation",
        "dataset VARCHAR, response_id VARCHAR, criterion VARCHAR, aggregation VARCHAR, score DOUBLE, "
        "raters BIGINT",
    ),
    "correlations": (
        "evaluator, version and dataset",
        "evaluator version dataset criterion aggregation level score",
        "evaluator VARCHAR, version BIGINT, dataset VARCHAR, criterion VARCHAR, aggregation VARCHAR, "
        "level VARCHAR, score VARCHAR, pearson DOUBLE, pearson_p DOUBLE, pearson_low DOUBLE, "
        "pearson_high DOUBLE, spearman DOUBLE, spearman_p DOUBLE, spearman_low DOUBLE, spearman_high "
        "DOUBLE, kendall DOUBLE, kendall_p DOUBLE, n BIGINT, excluded BIGINT, outcome VARCHAR",
    ),
    "runs": (
        "run",
        "run_id",
        "run_id VARCHAR, stage VARCHAR, key VARCHAR, parameters VARCHAR, inputs VARCHAR, outputs "
        "VARCHAR, started TIMESTAMP, ended TIMESTAMP, state VARCHAR, ssrem_version VARCHAR",
    ),
    "check_results": (
        "run",
        "run_id table_name expectation",
        "run_id VARCHAR, stage VARCHAR, table_name VARCHAR, expectation VARCHAR, passed BOOLEAN, "
        "rows_checked BIGINT, unexpected BIGINT",
    ),
}

SHAPES = {
    name: Shape(part, tuple(key.split()), tuple((c.split()[0], c.split()[1]) for c in columns.split(", ")))
    for name, (part, key, columns) in _TABLES.items()
}
"""Shape of each table by name."""
