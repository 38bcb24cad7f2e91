-- One row is a reply, with the message that it answers; null where the dump does not have it. Grain: row_no.
-- A message that went to quarantine still counts: the reply to it is accounted for.
SELECT child.row_no, coalesce(parent.keeper, parent.row_no) AS parent_no
FROM raw AS child
LEFT JOIN ids AS parent ON child.reply_to = parent.utterance_id
WHERE child.record = 'message' AND child.problem IS NULL AND child.reply_to IS NOT NULL
