-- table: candidates
-- A negative from another split would leak: validation and test would contain turns of the training split.
SELECT c.*
FROM candidates AS c
INNER JOIN responses AS r ON c.response_id = r.response_id
INNER JOIN turns AS t ON c.turn_id = t.turn_id
WHERE t.split <> r.split
