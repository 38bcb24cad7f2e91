-- table: negatives
-- A turn of the context is not a valid negative: the evaluator sees it as its input.
-- The generators `copied` and `own` copy such a turn on purpose.
SELECT n.*
FROM negatives AS n
INNER JOIN (SELECT corpus, response_id, unnest(context) AS turn_id FROM responses) AS r
    ON n.corpus = r.corpus AND n.response_id = r.response_id
INNER JOIN turns AS t ON n.corpus = t.corpus AND r.turn_id = t.turn_id
WHERE
    n.generator NOT IN ('copied', 'own')
    AND regexp_replace(lower(n.text), '\s', '', 'g') = regexp_replace(lower(t.text), '\s', '', 'g')
