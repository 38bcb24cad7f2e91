-- One row is a remaining message, with the remaining message that it replies to. Grain: row_no. Scratch.
-- The columns are those of 1_ingest/linked, from which the same positions are computed that an ingest without the
-- forgotten messages would give. row_no orders the messages as they landed.
-- In a thread of their own are the turns that a message without a reply leaves out, since it answers an earlier one.
WITH answering AS (
    SELECT conversation_no, turn, coalesce(answers, -1) AS answers
    FROM utterances
    WHERE corpus = $corpus AND turn > 0
    GROUP BY conversation_no, turn, answers
    HAVING NOT arg_min(reply_to IS NOT NULL OR reply_absent, position) AND coalesce(answers, -1) < turn - 1
),

threads AS (
    SELECT DISTINCT answering.conversation_no, inner_turn.turn
    FROM answering
    CROSS JOIN unnest(range(answering.answers + 1, answering.turn)) AS inner_turn (turn)
),

kept AS (
    SELECT
        conversation_no * 4294967296 + position AS row_no,
        conversation_no,
        turn,
        speaker,
        is_person,
        time,
        utterance_id,
        reply_to,
        reply_absent
    FROM utterances
    WHERE corpus = $corpus AND NOT list_contains($people, speaker)
)

SELECT
    child.row_no,
    child.conversation_no,
    child.speaker,
    child.time,
    child.is_person,
    child.reply_to IS NOT NULL OR child.reply_absent AS is_reply,
    threads.turn IS NOT NULL AS in_thread,
    parent.row_no AS parent_no
FROM kept AS child
LEFT JOIN kept AS parent
    ON
        NOT child.reply_absent
        AND child.reply_to = parent.utterance_id
        AND child.conversation_no = parent.conversation_no
LEFT JOIN threads ON child.conversation_no = threads.conversation_no AND child.turn = threads.turn
