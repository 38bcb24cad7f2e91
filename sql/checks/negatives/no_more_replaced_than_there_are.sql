-- table: negatives
-- At most all tokens of a response can be replaced; a drawn turn replaces all of them.
SELECT *
FROM negatives
WHERE replaced > tokens
