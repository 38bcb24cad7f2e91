-- One row is a response of a corpus's test split that a version scored: the share of its negatives that its true turn
-- is above, ties counting half, and the values by which studies put it into buckets. Grain: response_id.
-- The speaker's turns are those of the whole corpus.
WITH scored AS (
    SELECT response_id, kind, k, f
    FROM scores
    WHERE evaluator = $evaluator AND version = $version AND dataset = $dataset
),

shares AS (
    SELECT
        truth.response_id,
        avg(CASE WHEN truth.f > negative.f THEN 1.0 WHEN truth.f = negative.f THEN 0.5 ELSE 0.0 END) AS share
    FROM (SELECT response_id, f FROM scored WHERE kind = 'GT') AS truth
    INNER JOIN (SELECT response_id, f FROM scored WHERE kind IN ('SC', 'SP', 'SS', 'Rand')) AS negative
        ON truth.response_id = negative.response_id
    GROUP BY truth.response_id
),

activity AS (
    SELECT speaker, count(*) AS turns FROM turns WHERE corpus = $dataset GROUP BY speaker
)

SELECT
    shares.share,
    activity.turns AS speaker_turns,
    len(r.context) AS context_turns,
    len(regexp_extract_all(own.text, '\S+')) AS response_words
FROM shares
INNER JOIN responses AS r ON r.response_id = shares.response_id::BIGINT AND r.corpus = $dataset
INNER JOIN turns AS own ON r.response_id = own.turn_id AND own.corpus = $dataset
INNER JOIN activity ON r.speaker = activity.speaker
ORDER BY r.response_id
