-- One row is a message that lands, with the message that it replies to. Grain: row_no. Scratch.
-- parent_no is null where that message does not land in the same conversation. Texts are not part of this or the next
-- tables, since sorting them would dominate the running time.
WITH kept AS (
    SELECT raw.row_no, ranks.conversation_no, raw.speaker, raw.time
    FROM raw
    INNER JOIN conversation_ranks AS ranks ON raw.run_no = ranks.run_no
    ANTI JOIN rejected ON raw.row_no = rejected.row_no
    WHERE raw.record = 'message'
)

SELECT
    kept.row_no,
    kept.conversation_no,
    kept.speaker,
    kept.time,
    replies.row_no IS NOT NULL AS is_reply,
    parent.row_no AS parent_no
FROM kept
LEFT JOIN replies ON kept.row_no = replies.row_no
LEFT JOIN kept AS parent ON replies.parent_no = parent.row_no AND kept.conversation_no = parent.conversation_no
