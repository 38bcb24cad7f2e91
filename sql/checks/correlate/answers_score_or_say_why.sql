-- table: judgments
-- An answer without a score says why it has none, so that what is missing can be explained.
SELECT *
FROM judgments
WHERE (score IS NULL) <> (reason IS NOT NULL)
