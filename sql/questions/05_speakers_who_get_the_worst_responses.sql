-- Which speakers get the worst responses?
-- One row is a person to whom at least five responses of the test split are addressed, ordered by the mean f that ssrem
-- gives these responses. above_negatives is how often such a response scores above one of its own negatives; ties count
-- one half. If it is high although mean_f is low, all candidates resemble this person's contexts little. mean_f_given
-- is the mean f of the person's own responses.
WITH in_use AS (
    SELECT evaluator, version FROM evaluators WHERE evaluator = 'ssrem' AND promoted
),

scored AS (
    SELECT s.dataset AS corpus, s.response_id::BIGINT AS response_id, s.kind, s.f
    FROM scores AS s
    INNER JOIN in_use AS u ON s.evaluator = u.evaluator AND s.version = u.version
),

truths AS (
    SELECT corpus, response_id, f FROM scored WHERE kind = 'GT'
),

responses_above AS (
    SELECT
        truth.corpus,
        truth.response_id,
        truth.f,
        avg(CASE WHEN truth.f > wrong.f THEN 1 WHEN truth.f = wrong.f THEN 0.5 ELSE 0 END) AS above_negatives
    FROM truths AS truth
    INNER JOIN scored AS wrong ON truth.corpus = wrong.corpus AND truth.response_id = wrong.response_id
    WHERE wrong.kind IN ('SC', 'SP', 'SS', 'Rand')
    GROUP BY truth.corpus, truth.response_id, truth.f
),

said AS (
    SELECT a.corpus, r.speaker, r.addressee, a.f, a.above_negatives
    FROM responses_above AS a
    INNER JOIN responses AS r ON a.corpus = r.corpus AND a.response_id = r.response_id
),

received AS (
    SELECT corpus, addressee, count(*) AS responses, avg(f) AS mean_f, avg(above_negatives) AS above_negatives
    FROM said
    WHERE (corpus, addressee) IN (SELECT corpus, speaker FROM turns WHERE is_person)
    GROUP BY corpus, addressee
    HAVING count(*) >= 5
),

replied AS (
    SELECT corpus, speaker, avg(f) AS mean_f FROM said GROUP BY corpus, speaker
)

SELECT
    r.corpus,
    r.addressee AS speaker,
    r.responses,
    round(r.mean_f, 3) AS mean_f,
    round(r.above_negatives, 3) AS above_negatives,
    round(g.mean_f, 3) AS mean_f_given
FROM received AS r
LEFT JOIN replied AS g ON r.corpus = g.corpus AND r.addressee = g.speaker
ORDER BY r.mean_f, r.addressee
LIMIT 20
