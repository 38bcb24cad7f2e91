-- One row is a person in a conversation who says something sound. Grain: conversation_no, speaker. Scratch.
SELECT DISTINCT ranks.conversation_no, raw.speaker
FROM raw
INNER JOIN conversation_ranks AS ranks ON raw.run_no = ranks.run_no
WHERE raw.record = 'message' AND raw.reason IS NULL AND coalesce(raw.is_person, TRUE)
