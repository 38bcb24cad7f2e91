-- One row is a speaker id that names a seat, not a person: two ids that both speak in nearly every conversation.
-- Fewer than five conversations between two people prove nothing. Grain: speaker.
WITH spoken AS (
    SELECT DISTINCT conversation_id, speaker
    FROM raw
    WHERE record = 'message' AND problem IS NULL AND conversation_id IS NOT NULL AND trim(speaker) <> ''
),

shared AS (
    SELECT conversation_id, speaker
    FROM spoken
    QUALIFY count(*) OVER (PARTITION BY conversation_id) > 1
),

total AS (
    SELECT count(DISTINCT conversation_id) AS conversations FROM shared
),

busiest AS (
    SELECT speaker, count(*) AS conversations
    FROM shared
    GROUP BY speaker
    ORDER BY conversations DESC, speaker ASC
    LIMIT 2
)

SELECT b.speaker, b.conversations, t.conversations AS of_conversations
FROM busiest AS b
CROSS JOIN total AS t
WHERE
    t.conversations >= 5
    AND (SELECT min(conversations) FROM busiest) >= 0.95 * t.conversations
    AND (SELECT count(*) FROM busiest) = 2
ORDER BY b.speaker
