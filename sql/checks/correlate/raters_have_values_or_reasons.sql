-- table: rater_agreement
-- A row has a value if its outcome is ok, else a reason.
SELECT *
FROM rater_agreement
WHERE (outcome = 'ok') <> (value IS NOT NULL) OR (value IS NULL AND reason IS NULL)
