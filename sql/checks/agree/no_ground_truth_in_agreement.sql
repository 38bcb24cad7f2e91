-- table: correlations
-- n counts the annotated responses that are not ground truth and nothing else, unless ground truth was asked for:
-- then nothing is excluded and n counts all of them.
SELECT c.*
FROM correlations AS c
INNER JOIN (
    SELECT dataset, count(*) AS responses, count(*) FILTER (WHERE NOT ground_truth) AS fair
    FROM annotated GROUP BY dataset
) AS a ON c.dataset = a.dataset
WHERE
    c.level = 'segment'
    AND c.n > CASE WHEN c.excluded = 0 THEN a.responses ELSE a.fair END
