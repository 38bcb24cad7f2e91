-- One row is a conversation whose participants rated it: the mean f of its true responses in the test split, and the
-- rating as given. Grain: criterion, conversation_id.
WITH rated AS (
    SELECT
        c.conversation_id,
        o.format,
        o.sha256,
        unnest(json_keys(c.ratings)) AS criterion,
        c.ratings
    FROM conversations AS c
    INNER JOIN corpora AS o ON c.corpus = o.corpus
    WHERE c.corpus = $corpus AND c.ratings IS NOT NULL
),

averaged AS (
    SELECT
        rated.criterion,
        rated.conversation_id,
        any_value(rated.format) AS format,
        any_value(rated.sha256) AS sha256,
        avg(s.f) AS f,
        any_value(
            try_cast(
                json_extract(rated.ratings, '/' || replace(replace(rated.criterion, '~', '~0'), '/', '~1')) AS DOUBLE
            )
        ) AS rating
    FROM (
        SELECT * FROM scores
        WHERE evaluator = $evaluator AND version = $version AND dataset = $corpus AND kind = 'GT'
    ) AS s
    INNER JOIN turns AS t ON t.corpus = $corpus AND t.turn_id = s.response_id::BIGINT
    INNER JOIN rated ON t.conversation_id = rated.conversation_id
    GROUP BY rated.criterion, rated.conversation_id
)

SELECT criterion, format, sha256, f, rating
FROM averaged
WHERE isfinite(rating)
ORDER BY criterion, conversation_id
