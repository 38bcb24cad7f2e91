-- table: candidates
-- A turn of the context is not a valid negative: the evaluator sees it as its input.
SELECT c.*
FROM candidates AS c
INNER JOIN responses AS r ON c.response_id = r.response_id
WHERE c.kind <> 'GT' AND list_contains(r.context, c.turn_id)
