-- table: candidates
-- Each response has exactly one true candidate: itself.
SELECT r.response_id, c.turn_id
FROM responses AS r
LEFT JOIN candidates AS c ON r.response_id = c.response_id AND c.kind = 'GT'
WHERE c.turn_id IS DISTINCT FROM r.response_id
