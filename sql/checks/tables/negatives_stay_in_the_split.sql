-- table: candidates
-- A negative from another split would leak: validation and test would contain turns of the training split.
SELECT response_id, kind, k, turn_id
FROM misplaced_negatives
WHERE is_of_other_split
