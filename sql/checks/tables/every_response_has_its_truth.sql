-- table: candidates
-- Each response has exactly one true candidate: itself.
SELECT r.response_id, c.response_id AS truth_of, c.turn_id
FROM responses AS r
FULL OUTER JOIN (SELECT * FROM candidates WHERE kind = 'GT') AS c ON r.response_id = c.response_id
WHERE c.turn_id IS DISTINCT FROM r.response_id OR c.k <> 0
