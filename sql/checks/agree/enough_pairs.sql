-- table: correlations
-- A coefficient from fewer than three pairs says nothing, and one that is missing must say why.
SELECT *
FROM correlations
WHERE
    (outcome = 'ok' AND (n < 3 OR pearson IS NULL OR spearman IS NULL))
    OR (outcome <> 'ok' AND (pearson IS NOT NULL OR spearman IS NOT NULL))
