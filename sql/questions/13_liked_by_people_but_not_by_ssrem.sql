-- Which responses did people like that ssrem did not?
-- A place is a rank within the annotated set, from 0, the lowest, to 1, the highest; responses with equal scores share
-- the middle of their ranks. Ground truth is left out. Reverse the order for responses that ssrem
-- likes and people do not.
WITH placed AS (
    SELECT
        h.dataset,
        h.criterion,
        h.response_id,
        h.score AS human,
        a.system,
        a.context[-1] AS said_before,
        a.response,
        (percent_rank() OVER by_people + cume_dist() OVER by_people) / 2 AS human_place,
        (percent_rank() OVER by_ssrem + cume_dist() OVER by_ssrem) / 2 AS ssrem_place
    FROM human_scores AS h
    INNER JOIN overall_scores AS s USING (dataset, response_id)
    INNER JOIN evaluators AS e USING (evaluator, version)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE
        h.aggregation = 'mean' AND s.evaluator = 'ssrem' AND e.promoted AND NOT a.ground_truth AND s.score IS NOT NULL
    WINDOW
        by_people AS (PARTITION BY h.dataset, h.criterion ORDER BY h.score),
        by_ssrem AS (PARTITION BY h.dataset, h.criterion ORDER BY s.score)
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
