-- One row is a response of a test split that two versions scored, with the share of its negatives that score below the
-- true turn under each version; ties count half. unit: the response's conversation or, after the conversation's first
-- 1,000 turns, the 100 turns that are in a split together. Grain: response_id.
WITH scored AS (
    SELECT version, response_id, kind, k, f
    FROM scores
    WHERE evaluator = $evaluator AND dataset = $dataset AND version IN ($champion, $challenger)
),

shares AS (
    SELECT
        truth.response_id,
        truth.version,
        avg(CASE WHEN truth.f > negative.f THEN 1.0 WHEN truth.f = negative.f THEN 0.5 ELSE 0.0 END) AS share
    FROM (SELECT version, response_id, f FROM scored WHERE kind = 'GT') AS truth
    INNER JOIN (
        SELECT version, response_id, f FROM scored WHERE kind IN ('SC', 'SP', 'SS', 'Rand')
    ) AS negative ON truth.version = negative.version AND truth.response_id = negative.response_id
    GROUP BY truth.response_id, truth.version
)

SELECT
    r.response_id,
    r.conversation_id || CASE WHEN r.turn < 1_000 THEN '' ELSE '/' || r.turn // 100 END AS unit,
    old.share AS champion,
    new.share AS challenger
FROM (SELECT turn_id AS response_id, turn, conversation_id FROM turns WHERE corpus = $dataset) AS r
INNER JOIN
    (SELECT response_id, share FROM shares WHERE version = $champion) AS old
    ON r.response_id = old.response_id::BIGINT
INNER JOIN
    (SELECT response_id, share FROM shares WHERE version = $challenger) AS new
    ON r.response_id = new.response_id::BIGINT
ORDER BY r.response_id
