-- table: candidates
-- A negative with the text of the response would be learned as wrong although it is right.
SELECT response_id, kind, k, turn_id
FROM misplaced_negatives
WHERE is_response
