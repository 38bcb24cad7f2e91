-- One row is a speaker that probably is no person, though it counts as one. Grain: speaker.
-- conversations: in how many it speaks, where that is at least half of 20 or more, which three speakers at most do, and
-- three times as many as anyone else. texts, same: its most frequent texts, three at most, and how many of its messages
-- they are, where that is at least half of 20 or more messages. null where it is not so.
-- Approximate counts leave few speakers for the exact ones.
WITH spoken AS (
    SELECT
        raw.speaker,
        count(*) AS messages,
        approx_count_distinct(ranks.conversation_no) AS conversations,
        approx_count_distinct(raw.text) AS texts
    FROM raw
    INNER JOIN conversation_ranks AS ranks ON raw.run_no = ranks.run_no
    WHERE raw.record = 'message' AND raw.reason IS NULL AND raw.is_person IS NULL
    GROUP BY raw.speaker
),

total AS (
    SELECT count(DISTINCT conversation_no) AS conversations FROM conversation_ranks
),

busy AS (
    SELECT s.speaker, s.conversations, coalesce(s.conversations >= 0.4 * t.conversations, FALSE) AS suspect
    FROM spoken AS s
    CROSS JOIN total AS t
    WHERE t.conversations >= 20
),

counted AS (
    SELECT raw.speaker, count(DISTINCT ranks.conversation_no) AS conversations
    FROM raw
    INNER JOIN conversation_ranks AS ranks ON raw.run_no = ranks.run_no
    SEMI JOIN (SELECT * FROM busy WHERE suspect) AS b ON raw.speaker = b.speaker
    WHERE raw.record = 'message' AND raw.reason IS NULL
    GROUP BY raw.speaker
),

present AS (
    SELECT c.speaker, c.conversations, t.conversations AS of_conversations
    FROM counted AS c
    CROSS JOIN total AS t
    WHERE
        c.conversations >= 0.5 * t.conversations
        AND (SELECT count(*) FROM busy WHERE suspect) <= 3
        AND c.conversations >= 3 * (SELECT max(b.conversations) FROM busy AS b WHERE NOT b.suspect)
),

frequent AS (
    SELECT raw.speaker, count(*) AS times
    FROM raw
    SEMI JOIN (SELECT * FROM spoken WHERE messages >= 20 AND texts <= 0.8 * messages) AS s ON raw.speaker = s.speaker
    WHERE raw.record = 'message' AND raw.reason IS NULL
    GROUP BY raw.speaker, raw.text
    QUALIFY row_number() OVER (PARTITION BY raw.speaker ORDER BY times DESC, raw.text ASC) <= 3
),

repeating AS (
    SELECT f.speaker, count(*) AS texts, sum(f.times)::BIGINT AS same, any_value(s.messages) AS messages
    FROM frequent AS f
    INNER JOIN spoken AS s ON f.speaker = s.speaker
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
