-- Where do two evaluators disagree most?
-- One row is a true response of the test split. Scores of two evaluators have different scales, so their ranks are
-- compared, from 0, the lowest of the split, to 1, the highest; equal scores share the middle of their ranks.
WITH ranked AS (
    SELECT
        s.evaluator,
        s.dataset AS corpus,
        s.response_id::BIGINT AS response_id,
        (percent_rank() OVER by_score + cume_dist() OVER by_score) / 2 AS place
    FROM scores AS s
    INNER JOIN evaluators AS e ON s.evaluator = e.evaluator AND s.version = e.version
    WHERE e.promoted AND s.kind = 'GT' AND s.f IS NOT NULL
    WINDOW by_score AS (PARTITION BY s.evaluator, s.dataset ORDER BY s.f)
)

SELECT
    a.corpus,
    round(a.place, 2) AS ssrem_place,
    round(b.place, 2) AS rsrem_place,
    round(abs(a.place - b.place), 2) AS apart,
    last_turn.text AS said_before,
    this_turn.text AS response
FROM ranked AS a
INNER JOIN ranked AS b ON a.corpus = b.corpus AND a.response_id = b.response_id
INNER JOIN responses AS r ON a.corpus = r.corpus AND a.response_id = r.response_id
INNER JOIN turns AS last_turn ON r.corpus = last_turn.corpus AND r.context[-1] = last_turn.turn_id
INNER JOIN turns AS this_turn ON r.corpus = this_turn.corpus AND r.response_id = this_turn.turn_id
WHERE a.evaluator = 'ssrem' AND b.evaluator = 'rsrem'
ORDER BY abs(a.place - b.place) DESC, a.response_id ASC
LIMIT 20
