-- table: studies
-- Shares, and quantiles and deviations of scores brought to [0, 1], lie within [0, 1], correlations within [-1, 1].
-- Standard deviations in own units have no upper bound, and shifts, which are counted in standard deviations, no bound
-- at all.
SELECT * FROM studies
WHERE
    low > high
    OR CASE
        WHEN measure IN ('better', 'fooled') THEN value NOT BETWEEN 0 AND 1 OR low < 0 OR high > 1
        WHEN measure = 'sd' OR starts_with(measure, 'q') THEN value NOT BETWEEN 0 AND 1
        WHEN measure = 'sd_unscaled' THEN value < 0
        WHEN measure = 'shift' THEN FALSE
        ELSE value NOT BETWEEN -1 AND 1 OR low < -1 OR high > 1
    END
