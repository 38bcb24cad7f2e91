-- annotated sets
SELECT
    dataset, count(*) AS responses, count(*) FILTER (WHERE ground_truth) AS ground_truth,
    count(reference) AS with_reference
FROM rated_responses GROUP BY dataset ORDER BY dataset
