-- One row is a record of a landed corpus, as a reader would give it, with its row_no in the quarantine and the reason
-- why it did not land. Grain: order of the rows.
-- Messages that had landed have no known rank in the dump, so their row_no is below 0. A reply to a message that was
-- forgotten before refers to the id chr(0), which no message has.
-- First come the messages that landed, then the quarantined records, then what describes conversations. A quarantined
-- record has its fields if it could be read, and its bytes otherwise.
-- in_thread: true for turns between a turn that names no reply and the earlier turn that it answers.
WITH answering AS (
    SELECT conversation_no, turn, coalesce(answers, -1) AS answers
    FROM published.utterances
    WHERE corpus = $corpus AND turn > 0
    GROUP BY conversation_no, turn, answers
    HAVING NOT arg_min(reply_to IS NOT NULL OR reply_absent, position) AND coalesce(answers, -1) < turn - 1
),

threads AS (
    SELECT DISTINCT answering.conversation_no, inner_turn.turn
    FROM answering
    CROSS JOIN unnest(range(answering.answers + 1, answering.turn)) AS inner_turn (turn)
),

quarantined AS (
    SELECT
        *,
        CASE
            WHEN octet_length(raw) > 0 AND NOT list_contains($unreadable::VARCHAR[], reason)
                THEN from_json(decode(raw), $fields)
        END AS fields
    FROM published.quarantine
    WHERE corpus = $corpus
),

spoken AS (
    SELECT *, CASE WHEN $seats THEN length(conversation_id) + 2 ELSE 1 END AS start
    FROM published.utterances
    WHERE corpus = $corpus
),

-- The addressee is the speaker where there is none, so that none is inferred from the message replied to.
records AS (
    SELECT
        u.* EXCLUDE (speaker, addressee, reply_to),
        1 AS part,
        u.conversation_no AS place,
        least((SELECT min(quarantined.row_no) FROM quarantined), 0)
        - row_number() OVER (ORDER BY u.conversation_no, u.position) AS row_no,
        coalesce(u.reply_to, CASE WHEN u.reply_absent THEN chr(0) END) AS reply_to,
        'message' AS record,
        '' AS file,
        substr(u.speaker, u.start) AS speaker,
        if(u.addressee_from = 'reply', NULL, substr(coalesce(u.addressee, u.speaker), u.start)) AS addressee,
        t.turn IS NOT NULL AS in_thread
    FROM spoken AS u
    LEFT JOIN threads AS t ON u.conversation_no = t.conversation_no AND u.turn = t.turn
    UNION ALL BY NAME
    SELECT
        fields.*,
        2 AS part,
        row_no AS place,
        row_no,
        CASE WHEN record = 'message' THEN reason END AS reason,
        record,
        file,
        line,
        CASE WHEN fields IS NULL THEN reason END AS problem,
        CASE WHEN fields IS NULL THEN raw END AS raw
    FROM quarantined
    UNION ALL BY NAME
    SELECT 3 AS part, conversation_no AS place, 'conversation' AS record, '' AS file, conversation_id, metadata
    FROM published.conversations
    WHERE corpus = $corpus AND metadata IS NOT NULL
)

SELECT
    NULL::VARCHAR AS source,
    record,
    file,
    line,
    conversation_id,
    utterance_id,
    speaker,
    nullif(is_person, TRUE) AS is_person,
    addressee,
    reply_to,
    in_thread,
    text,
    time,
    metadata,
    problem,
    raw,
    row_no,
    reason
FROM records
ORDER BY part, place, position
