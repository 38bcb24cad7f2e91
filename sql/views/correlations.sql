-- One row is a score at one level. Grain: evaluator, version, dataset, criterion, aggregation, level, score.
-- Correlations over too few systems have no row here, even if they were forced: they are in `agreement` only.
SELECT
    evaluator,
    version,
    dataset,
    criterion,
    aggregation,
    level,
    score,
    any_value(statistic) FILTER (WHERE measure = 'pearson') AS pearson,
    any_value(p) FILTER (WHERE measure = 'pearson') AS pearson_p,
    any_value(low) FILTER (WHERE measure = 'pearson') AS pearson_low,
    any_value(high) FILTER (WHERE measure = 'pearson') AS pearson_high,
    any_value(statistic) FILTER (WHERE measure = 'spearman') AS spearman,
    any_value(p) FILTER (WHERE measure = 'spearman') AS spearman_p,
    any_value(low) FILTER (WHERE measure = 'spearman') AS spearman_low,
    any_value(high) FILTER (WHERE measure = 'spearman') AS spearman_high,
    any_value(statistic) FILTER (WHERE measure = 'kendall') AS kendall,
    any_value(p) FILTER (WHERE measure = 'kendall') AS kendall_p,
    any_value(low) FILTER (WHERE measure = 'kendall') AS kendall_low,
    any_value(high) FILTER (WHERE measure = 'kendall') AS kendall_high,
    any_value(CASE WHEN level = 'system' THEN groups ELSE n END) AS n,
    any_value(excluded) AS excluded,
    any_value(outcome) FILTER (WHERE measure = 'pearson') AS outcome
FROM agreement
WHERE
    grouping = 'pooled'
    AND measure IN ('pearson', 'spearman', 'kendall')
    AND (n > 0 OR level = 'conversation')
    AND NOT forced
    AND outcome <> 'too_few_systems'
GROUP BY ALL
