-- One row is a speaker of a conversation, by the name in the dump. Grain: conversation_no, speaker, is_person. Scratch.
SELECT DISTINCT
    conversation_no,
    is_person,
    CASE WHEN $speaker_scope = 'person' THEN speaker ELSE substr(speaker, length(conversation_id) + 2) END AS speaker
FROM utterances
