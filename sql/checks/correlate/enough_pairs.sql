-- table: agreement
-- A coefficient from fewer than three pairs says nothing. Accuracy is exempt: two systems are one pair to order.
SELECT *
FROM agreement
WHERE
    outcome = 'ok'
    AND measure IN ('pearson', 'spearman', 'kendall')
    AND CASE WHEN level = 'system' THEN groups ELSE n END < 3
