-- One row is a speaker that probably is not a person, though it counts as one. Grain: speaker.
-- conversations: the number in which it speaks, if that is at least half of 20 or more, at least three times that of
-- anyone else, and at most three speakers speak in so many; else null. texts, same: the number of its most frequent
-- texts, at most three, and of its messages with them, if these are at least half of 20 or more messages; else null.
-- Approximate counts of texts leave few speakers for the exact ones.
WITH said AS (
    SELECT
        text,
        CASE
            WHEN $speaker_scope = 'person' THEN speaker ELSE substr(speaker, length(conversation_id) + 2)
        END AS speaker
    FROM utterances
    WHERE is_person
),

messages AS (
    SELECT speaker, count(*) AS messages, approx_count_distinct(text) AS texts
    FROM said
    GROUP BY speaker
),

total AS (
    SELECT count(*) AS conversations FROM conversations
),

busy AS (
    SELECT
        s.speaker,
        count(*) AS conversations,
        t.conversations AS of_conversations,
        count(*) >= 0.4 * t.conversations AS suspect
    FROM spoken AS s
    CROSS JOIN total AS t
    WHERE s.is_person AND t.conversations >= 20
    GROUP BY s.speaker, t.conversations
),

present AS (
    SELECT speaker, conversations, of_conversations
    FROM busy
    WHERE
        conversations >= 0.5 * of_conversations
        AND (SELECT count(*) FROM busy AS b WHERE b.suspect) <= 3
        AND conversations >= 3 * (SELECT max(b.conversations) FROM busy AS b WHERE NOT b.suspect)
),

frequent AS (
    SELECT said.speaker, count(*) AS times
    FROM said
    SEMI JOIN (SELECT * FROM messages WHERE messages >= 20 AND texts <= 0.8 * messages) AS s ON said.speaker = s.speaker
    GROUP BY said.speaker, said.text
    QUALIFY row_number() OVER (PARTITION BY said.speaker ORDER BY times DESC, said.text ASC) <= 3
),

repeating AS (
    SELECT f.speaker, count(*) AS texts, sum(f.times)::BIGINT AS same, any_value(s.messages) AS messages
    FROM frequent AS f
    INNER JOIN messages AS s ON f.speaker = s.speaker
    GROUP BY f.speaker
    HAVING sum(f.times) >= 0.5 * any_value(s.messages)
)

SELECT
    coalesce(p.speaker, r.speaker) AS speaker,
    p.conversations,
    p.of_conversations,
    r.texts,
    r.same,
    r.messages
FROM present AS p
FULL OUTER JOIN repeating AS r ON p.speaker = r.speaker
ORDER BY p.conversations DESC NULLS LAST, r.messages DESC, speaker ASC
