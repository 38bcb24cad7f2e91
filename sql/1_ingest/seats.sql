-- One row is a speaker id that names a seat, not a person: one of two ids that both speak in nearly every conversation.
-- Fewer than five conversations of two or more people are no evidence. Grain: speaker.
WITH several AS (
    SELECT conversation_no
    FROM spoken
    WHERE is_person
    GROUP BY conversation_no
    HAVING count(*) > 1
),

shared AS (
    SELECT spoken.conversation_no, spoken.speaker
    FROM spoken
    SEMI JOIN several ON spoken.conversation_no = several.conversation_no
    WHERE spoken.is_person
),

total AS (
    SELECT count(*) AS conversations FROM several
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
