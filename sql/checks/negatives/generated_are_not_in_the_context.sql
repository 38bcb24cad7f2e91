-- table: negatives
-- A turn of the context is not a valid negative: the evaluator sees it as its input.
SELECT n.*
FROM negatives AS n
INNER JOIN responses AS r ON n.corpus = r.corpus AND n.response_id = r.response_id
INNER JOIN turns AS t ON n.corpus = t.corpus AND t.turn_id BETWEEN r.context_from AND r.context_to
WHERE regexp_replace(lower(n.text), '\s', '', 'g') = regexp_replace(lower(t.text), '\s', '', 'g')
