-- Which negatives fool ssrem?
-- The rows are the negatives that score furthest above the true response, with the turn that both would answer. Some of
-- them are as good a response as the true one.
WITH in_use AS (
    SELECT evaluator, version FROM evaluators WHERE evaluator = 'ssrem' AND promoted
),

scored AS (
    SELECT s.dataset AS corpus, s.response_id::BIGINT AS response_id, s.kind, s.k, s.f
    FROM scores AS s
    INNER JOIN in_use AS u ON s.evaluator = u.evaluator AND s.version = u.version
),

truths AS (
    SELECT corpus, response_id, f FROM scored WHERE kind = 'GT'
),

fooled AS (
    SELECT wrong.corpus, wrong.response_id, wrong.kind, c.turn_id, wrong.f - truth.f AS above_by
    FROM scored AS wrong
    INNER JOIN truths AS truth ON wrong.corpus = truth.corpus AND wrong.response_id = truth.response_id
    INNER JOIN candidates AS c
        ON wrong.corpus = c.corpus AND wrong.response_id = c.response_id AND wrong.kind = c.kind AND wrong.k = c.k
    WHERE wrong.kind IN ('SC', 'SP', 'SS', 'Rand') AND wrong.f > truth.f
    ORDER BY above_by DESC, wrong.response_id ASC, wrong.kind ASC
    LIMIT 20
)

SELECT
    f.corpus,
    f.kind,
    round(f.above_by, 3) AS above_by,
    last_turn.text AS said_before,
    true_turn.text AS true_response,
    wrong_turn.text AS negative
FROM fooled AS f
INNER JOIN responses AS r ON f.corpus = r.corpus AND f.response_id = r.response_id
INNER JOIN turns AS last_turn ON r.corpus = last_turn.corpus AND r.context[-1] = last_turn.turn_id
INNER JOIN turns AS true_turn ON f.corpus = true_turn.corpus AND f.response_id = true_turn.turn_id
INNER JOIN turns AS wrong_turn ON f.corpus = wrong_turn.corpus AND f.turn_id = wrong_turn.turn_id
ORDER BY above_by DESC, f.response_id ASC, f.kind ASC
