-- table: negatives
-- An empty text is told from the true response without reading either.
SELECT *
FROM negatives
WHERE NOT regexp_matches(text, '\S')
