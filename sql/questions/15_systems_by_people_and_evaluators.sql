-- Which systems do people put first, and do the evaluators agree?
-- One row is a system under one criterion and one evaluator: its mean human score, the evaluator's mean, and its
-- place by each, ground truth left out. With few systems, compare the places instead of correlating the means.
WITH human AS (
    SELECT h.dataset, h.criterion, a.system, avg(h.score) AS human, count(*) AS responses
    FROM human_scores AS h
    INNER JOIN rated_responses AS a ON h.dataset = a.dataset AND h.response_id = a.response_id
    WHERE h.aggregation = 'mean' AND a.system IS NOT NULL
    GROUP BY h.dataset, h.criterion, a.system
),

evaluated AS (
    SELECT s.dataset, s.evaluator, a.system, avg(s.score) AS score
    FROM overall_scores AS s
    INNER JOIN evaluators AS e USING (evaluator, version)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE e.promoted AND a.system IS NOT NULL AND NOT a.ground_truth
    GROUP BY s.dataset, s.evaluator, a.system
)

SELECT
    h.dataset,
    h.criterion,
    e.evaluator,
    h.system,
    h.responses,
    round(h.human, 2) AS human,
    round(e.score, 3) AS score,
    rank() OVER (PARTITION BY h.dataset, h.criterion, e.evaluator ORDER BY h.human DESC) AS place_by_people,
    rank() OVER (PARTITION BY h.dataset, h.criterion, e.evaluator ORDER BY e.score DESC) AS place_by_evaluator
FROM human AS h
INNER JOIN evaluated AS e ON h.dataset = e.dataset AND h.system = e.system
ORDER BY h.dataset, h.criterion, e.evaluator, place_by_people
