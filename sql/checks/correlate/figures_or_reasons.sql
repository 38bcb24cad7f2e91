-- table: agreement
-- A missing figure has a reason, a present one a number, and an interval has two ends in order.
SELECT *
FROM agreement
WHERE
    (outcome = 'ok') <> (statistic IS NOT NULL)
    OR (statistic IS NULL AND reason IS NULL)
    OR (low IS NULL) <> (high IS NULL)
    OR low > high
