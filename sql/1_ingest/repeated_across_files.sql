-- One row is an id that occurs in several files of the dump in a way that shows that ids start anew in each file: the
-- id of a message, together with that of its conversation, or the id of a conversation that has messages without ids or
-- lies in several folders. Grain: kind, id.
WITH of_files AS (
    SELECT source, file, record, reason, conversation_id, utterance_id FROM raw WHERE source IS NOT NULL
),

messages AS (
    SELECT utterance_id AS id, count(DISTINCT source) AS files
    FROM of_files
    WHERE record = 'message' AND coalesce(reason, 'forgotten') = 'forgotten' AND utterance_id IS NOT NULL
    GROUP BY conversation_id, utterance_id
    HAVING min(source) <> max(source)
),

conversations AS (
    SELECT conversation_id AS id, count(DISTINCT source) AS files
    FROM of_files
    WHERE conversation_id IS NOT NULL
    GROUP BY conversation_id
    HAVING
        min(source) <> max(source)
        AND (
            count(*) FILTER (WHERE record = 'message' AND reason IS NULL AND utterance_id IS NULL) > 0
            OR bool_or(file <> source)
        )
)

SELECT 'message' AS kind, id, max(files) AS files FROM messages
GROUP BY id
UNION ALL
SELECT 'conversation' AS kind, id, files FROM conversations
