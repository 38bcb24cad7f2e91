-- table: candidates
-- A negative with the text of the response would be trained as wrong although it is right.
SELECT c.*
FROM candidates AS c
INNER JOIN turns AS response ON c.response_id = response.turn_id
INNER JOIN turns AS negative ON c.turn_id = negative.turn_id
WHERE c.kind <> 'GT' AND (c.turn_id = c.response_id OR negative.text_hash = response.text_hash)
