-- One row is a response that people scored, with an evaluator's score and what studies put it into buckets by.
-- Grain: response_id. The score is that of ssrem score: mixed where every response has it, else unreferenced, else
-- referenced. The human score is the mean by the criterion 'overall', or by the first there is.
WITH scored AS (
    SELECT
        response_id,
        CASE
            WHEN count(h) OVER () = count(*) OVER () THEN h
            WHEN count(f) OVER () = 0 THEN g
            ELSE f
        END AS score
    FROM scores
    WHERE evaluator = $evaluator AND version = $version AND dataset = $dataset AND kind = 'response'
),

criterion AS (
    SELECT coalesce(max(criterion) FILTER (WHERE criterion = 'overall'), min(criterion)) AS name
    FROM human_scores
    WHERE dataset = $dataset
)

SELECT
    scored.score,
    people.score AS human,
    len(regexp_extract_all(annotated.response, '\S+')) AS response_words,
    len(annotated.context) AS context_turns,
    len(regexp_extract_all(array_to_string(annotated.context, ' '), '\S+')) AS context_words,
    annotated.system
FROM scored
INNER JOIN annotated ON scored.response_id = annotated.response_id AND annotated.dataset = $dataset
INNER JOIN human_scores AS people
    ON scored.response_id = people.response_id AND people.dataset = $dataset AND people.aggregation = 'mean'
INNER JOIN criterion ON people.criterion = criterion.name
WHERE NOT annotated.ground_truth AND scored.score IS NOT NULL
ORDER BY annotated.response_id::BIGINT
