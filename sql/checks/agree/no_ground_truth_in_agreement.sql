-- table: correlations
-- n counts the annotated responses that are not ground truth and nothing else.
SELECT c.*
FROM correlations AS c
INNER JOIN (
    SELECT dataset, count(*) FILTER (WHERE NOT ground_truth) AS fair FROM annotated GROUP BY dataset
) AS a ON c.dataset = a.dataset
WHERE c.level = 'segment' AND c.n > a.fair
