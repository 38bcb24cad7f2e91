-- One row is how raters of an annotated set agree by a criterion: with their outliers kept or removed, over all
-- responses or only those that evaluators are compared on.
SELECT
    dataset, criterion, responses, outliers, max(units) AS units, any_value(ratings) AS ratings,
    any_value(removed) AS removed,
    max(value) FILTER (WHERE measure = 'alpha_interval') AS alpha_interval,
    max(value) FILTER (WHERE measure = 'alpha_ordinal') AS alpha_ordinal,
    max(value) FILTER (WHERE measure = 'alpha_nominal') AS alpha_nominal,
    max(value) FILTER (WHERE measure = 'fleiss_kappa') AS fleiss_kappa,
    max(value) FILTER (WHERE measure = 'weighted_kappa') AS weighted_kappa
FROM rater_agreement
GROUP BY dataset, criterion, responses, outliers
ORDER BY dataset, criterion, responses, outliers
