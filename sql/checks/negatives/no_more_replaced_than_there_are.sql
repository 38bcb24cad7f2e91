-- table: negatives
-- Of a response's tokens no more than all can be replaced; a drawn turn replaces all of them.
SELECT *
FROM negatives
WHERE replaced > tokens
