-- Does a longer response get a higher score?
-- One row is a range of lengths, in words, of true responses of the test split, under one evaluator. A place is a rank
-- within the split, from 0, the lowest, to 1, the highest; responses with equal scores share the middle of their ranks.
-- If an evaluator ignores length, mean_place is near .5 in every row; an evaluator that does not is easily gamed.
WITH measured AS (
    SELECT
        s.evaluator,
        s.dataset AS corpus,
        len(regexp_extract_all(t.text, '\S+')) AS words,
        (percent_rank() OVER by_score + cume_dist() OVER by_score) / 2 AS place
    FROM scores AS s
    INNER JOIN evaluators AS e ON s.evaluator = e.evaluator AND s.version = e.version
    INNER JOIN turns AS t ON s.dataset = t.corpus AND s.response_id::BIGINT = t.turn_id
    WHERE e.promoted AND s.kind = 'GT' AND s.f IS NOT NULL
    WINDOW by_score AS (PARTITION BY s.evaluator, s.dataset ORDER BY s.f)
),

grouped AS (
    SELECT
        *,
        CASE
            WHEN words <= 3 THEN '1 to 3'
            WHEN words <= 7 THEN '4 to 7'
            WHEN words <= 15 THEN '8 to 15'
            WHEN words <= 31 THEN '16 to 31'
            ELSE '32 or more'
        END AS response_words
    FROM measured
)

SELECT
    corpus,
    evaluator,
    response_words,
    count(*) AS responses,
    round(avg(place), 3) AS mean_place
FROM grouped
GROUP BY corpus, evaluator, response_words
ORDER BY corpus, evaluator, min(words)
