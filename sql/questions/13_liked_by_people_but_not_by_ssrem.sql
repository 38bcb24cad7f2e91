-- Which responses did people like that ssrem did not?
-- A place is a rank within the annotated set: 0 is its lowest response, 1 its highest. Ground truth is left out, as
-- in correlations. The score is h where no fewer responses have it than f, else f, else g. Reverse the order for
-- responses that ssrem likes and people do not.
WITH judged AS (
    SELECT
        h.dataset,
        h.criterion,
        h.response_id,
        h.score AS human,
        CASE
            WHEN count(s.h) OVER whole >= greatest(count(s.f) OVER whole, 1) THEN s.h
            WHEN count(s.f) OVER whole > 0 THEN s.f
            ELSE s.g
        END AS score
    FROM human_scores AS h
    INNER JOIN scores AS s ON h.dataset = s.dataset AND h.response_id = s.response_id
    INNER JOIN evaluators AS e ON s.evaluator = e.evaluator AND s.version = e.version
    WHERE h.aggregation = 'mean' AND s.kind = 'response' AND s.evaluator = 'ssrem' AND e.promoted
    WINDOW whole AS (PARTITION BY s.dataset, h.criterion)
),

placed AS (
    SELECT
        j.dataset,
        j.criterion,
        j.response_id,
        j.human,
        a.system,
        a.context[-1] AS said_before,
        a.response,
        percent_rank() OVER (PARTITION BY j.dataset, j.criterion ORDER BY j.human) AS human_place,
        percent_rank() OVER (PARTITION BY j.dataset, j.criterion ORDER BY j.score) AS ssrem_place
    FROM judged AS j
    INNER JOIN rated_responses AS a ON j.dataset = a.dataset AND j.response_id = a.response_id
    WHERE NOT a.ground_truth AND j.score IS NOT NULL
)

SELECT
    dataset,
    criterion,
    system,
    round(human, 2) AS human,
    round(human_place, 2) AS human_place,
    round(ssrem_place, 2) AS ssrem_place,
    said_before,
    response
FROM placed
ORDER BY human_place - ssrem_place DESC, dataset ASC, criterion ASC, response_id ASC
LIMIT 20
