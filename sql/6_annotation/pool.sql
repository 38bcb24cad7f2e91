-- One row is a context of the training split with its response; at most $most are drawn by seed. Grain: response_id.
WITH drawn AS (
    SELECT response_id, context
    FROM responses
    WHERE corpus = $corpus AND split = 'train'
    ORDER BY md5_number_lower($seed::VARCHAR || ':' || response_id::VARCHAR), response_id
    LIMIT $most
)

SELECT
    string_agg(c.text, ' ' ORDER BY c.turn_id) AS context,
    any_value(t.text) AS response
FROM (SELECT response_id, unnest(context) AS turn_id FROM drawn) AS d
INNER JOIN turns AS t ON t.corpus = $corpus AND d.response_id = t.turn_id
INNER JOIN turns AS c ON c.corpus = $corpus AND d.turn_id = c.turn_id
GROUP BY d.response_id
ORDER BY d.response_id
