-- table: agreement
-- A row has a figure if its outcome is ok, else a reason; an interval has both ends, the lower one first.
SELECT *
FROM agreement
WHERE
    (outcome = 'ok') <> (statistic IS NOT NULL)
    OR (statistic IS NULL AND reason IS NULL)
    OR (low IS NULL) <> (high IS NULL)
    OR low > high
