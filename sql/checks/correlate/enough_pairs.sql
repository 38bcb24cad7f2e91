-- table: agreement
-- A coefficient from fewer than three pairs says nothing; accuracies compare pairs of systems, of which two have one.
SELECT *
FROM agreement
WHERE
    outcome = 'ok'
    AND measure IN ('pearson', 'spearman', 'kendall')
    AND CASE WHEN level = 'system' THEN groups ELSE n END < 3
