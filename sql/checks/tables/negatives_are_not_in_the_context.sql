-- table: candidates
-- A turn of the context is not a valid negative: the evaluator sees it as its input.
SELECT n.response_id, n.kind, n.k, n.turn_id
FROM misplaced_negatives AS n
INNER JOIN responses AS r ON n.response_id = r.response_id
WHERE n.is_near_context AND list_contains(r.context, n.turn_id)
