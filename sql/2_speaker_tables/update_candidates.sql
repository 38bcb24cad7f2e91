-- Replaces the draws marked by -1 with their redraws.
UPDATE candidates SET turn_id = r.turn_id
FROM candidates_redrawn AS r
WHERE
    candidates.kind = $kind
    AND candidates.turn_id = -1
    AND candidates.response_id = r.response_id
    AND candidates.k = r.k
