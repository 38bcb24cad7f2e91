-- One row is what the dump seems to hold more than once. Grain: the corpus.
-- repeats: messages with the conversation, speaker, time and text of another one; timed: those with a time.
-- beginnings: conversations that are the beginning of another one, as in logs whose rows repeat a growing history;
-- conversations: those of several messages. All are of the first 20,000 conversations, which bounds the time.
WITH said AS (
    SELECT
        conversation_no,
        position,
        sum(hash(text, position)::HUGEINT) OVER so_far AS begun,
        position = max(position) OVER (PARTITION BY conversation_no) AS is_last
    FROM utterances
    WHERE conversation_no < 20_000
    WINDOW so_far AS (PARTITION BY conversation_no ORDER BY position)
),

whole AS (
    SELECT * FROM said WHERE is_last AND position > 0
),

again AS (
    SELECT w.conversation_no
    FROM whole AS w
    SEMI JOIN said AS s ON w.begun = s.begun AND w.position = s.position AND NOT s.is_last
)

SELECT
    count(time) - count(DISTINCT CASE WHEN time IS NOT NULL THEN hash(conversation_no, speaker, time, text) END)
        AS repeats,
    count(time) AS timed,
    (SELECT count(*) FROM again) AS beginnings,
    (SELECT count(*) FROM whole) AS conversations
FROM utterances
WHERE conversation_no < 20_000
