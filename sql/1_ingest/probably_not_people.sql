-- One row is a speaker that counts as a person but probably is none. Grain: speaker.
-- conversations: number of those in which it speaks; null unless that is at least half of 20 or more, at most three
-- speakers speak in 40% or more, and every other speaker in at most a third as many.
-- texts, same: number of its most frequent texts, at most three, and of its messages with them; null unless these are
-- at least half of 20 or more messages.
-- Approximate counts of texts in the first 100,000 conversations select the few speakers that are counted exactly.
WITH said AS NOT MATERIALIZED (
    SELECT
        conversation_no,
        text,
        CASE
            WHEN $speaker_scope = 'person' THEN speaker ELSE substr(speaker, length(conversation_id) + 2)
        END AS speaker
    FROM utterances
    WHERE is_person
),

suspects AS (
    SELECT speaker
    FROM said
    WHERE conversation_no < 100000
    GROUP BY speaker
    HAVING count(*) >= 20 AND approx_count_distinct(text) <= 0.8 * count(*)
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

repeated AS (
    SELECT
        said.speaker,
        count(*) AS times,
        sum(times) OVER (PARTITION BY said.speaker)::BIGINT AS messages
    FROM said
    SEMI JOIN suspects ON said.speaker = suspects.speaker
    GROUP BY said.speaker, said.text
    QUALIFY row_number() OVER (PARTITION BY said.speaker ORDER BY times DESC) <= 3
),

repeating AS (
    SELECT speaker, count(*) AS texts, sum(times)::BIGINT AS same, any_value(messages) AS messages
    FROM repeated
    GROUP BY speaker
    HAVING sum(times) >= 0.5 * any_value(messages)
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
