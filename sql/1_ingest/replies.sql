-- One row is a reply with the message that it refers to; null if the dump lacks it. Grain: row_no.
-- Quarantined messages count, so that replies to them are accounted for. A message that replies to itself, as some data
-- sets mark the first of a thread, replies to nothing.
SELECT child.row_no, coalesce(parent.keeper, parent.row_no) AS parent_no
FROM raw AS child
LEFT JOIN ids AS parent ON child.reply_to = parent.utterance_id
WHERE
    child.record = 'message'
    AND child.problem IS NULL
    AND child.reply_to IS NOT NULL
    AND child.reply_to IS DISTINCT FROM child.utterance_id
