-- table: negatives
-- An evaluator would recognise an empty negative without learning anything about responses.
SELECT *
FROM negatives
WHERE NOT regexp_matches(text, '\S')
