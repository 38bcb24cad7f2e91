-- One row is a message that lands, with the message of the dump that it replies to. Grain: row_no. Scratch.
-- parent_no is null where the dump lacks that message. Texts are not part of this, since sorting them would dominate
-- the running time.
SELECT
    raw.row_no,
    ranks.conversation_no,
    raw.speaker,
    raw.time,
    coalesce(raw.is_person, TRUE) AS is_person,
    replies.row_no IS NOT NULL AS is_reply,
    coalesce(raw.in_thread, FALSE) AS in_thread,
    replies.parent_no
FROM raw
INNER JOIN conversation_ranks AS ranks ON raw.run_no = ranks.run_no
ANTI JOIN rejected ON raw.row_no = rejected.row_no
LEFT JOIN replies ON raw.row_no = replies.row_no
WHERE raw.record = 'message'
