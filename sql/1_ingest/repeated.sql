-- One row is the corpus, with counts of what the dump seems to hold more than once. Grain: the corpus.
-- repeats: messages with the speaker, time and text of another one, and with its conversation or, as where two exports
-- of a channel overlap, its id before conversations or files were put before it; timed: messages with a time.
-- beginnings: conversations that are the beginning of another one, as in logs whose rows repeat a growing history;
-- conversations: those of several messages. copies: conversations of four messages or more that have the texts of an
-- earlier one, or hold their own texts twice. Only the first 20,000 conversations are counted, which bounds the time.
WITH said AS (
    SELECT
        conversation_no,
        position,
        text,
        sum(hash(text, position)::HUGEINT) OVER so_far AS begun,
        max(position) OVER (PARTITION BY conversation_no) AS last_position
    FROM utterances
    WHERE conversation_no < 20_000
    WINDOW so_far AS (PARTITION BY conversation_no ORDER BY position)
),

whole AS (
    SELECT * FROM said WHERE position = last_position AND position > 0
),

again AS (
    SELECT w.conversation_no
    FROM whole AS w
    SEMI JOIN said AS s ON w.begun = s.begun AND w.position = s.position AND s.position < s.last_position
),

-- In a conversation that holds its texts twice, the second half has the texts of the first half, in the same order.
doubled AS (
    SELECT conversation_no
    FROM said
    WHERE last_position > 2 AND last_position % 2 = 1
    GROUP BY conversation_no
    HAVING sum(
        CASE
            WHEN 2 * position <= last_position THEN hash(text, position)::HUGEINT
            ELSE -hash(text, position - (last_position + 1) // 2)::HUGEINT
        END
    ) = 0
)

SELECT
    count(time) - least(
        count(DISTINCT CASE WHEN time IS NOT NULL THEN hash(conversation_no, speaker, time, text) END),
        count(DISTINCT CASE
            WHEN time IS NOT NULL
                THEN hash(split_part(utterance_id, '/', -1), speaker, time, text)
        END)
    ) AS repeats,
    count(time) AS timed,
    (SELECT count(*) FROM again) AS beginnings,
    (SELECT count(*) FROM whole) AS conversations,
    (SELECT count(*) - count(DISTINCT hash(begun, position)) FROM whole WHERE position > 2)
    + (SELECT count(*) FROM doubled) AS copies
FROM utterances
WHERE conversation_no < 20_000
