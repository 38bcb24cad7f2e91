-- table: studies
-- Shares lie within [0, 1] and correlations within [-1, 1]; only standard deviations in own units have no upper bound.
SELECT * FROM studies
WHERE CASE WHEN measure = 'sd_unscaled' THEN value < 0 ELSE value NOT BETWEEN -1 AND 1 END
