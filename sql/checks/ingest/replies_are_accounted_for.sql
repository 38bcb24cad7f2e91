-- table: utterances
-- A reply refers to a message of its conversation, unless it is marked as one to an absent message.
-- An ingest lands one corpus, so ids are compared without their corpus.
SELECT child.corpus, child.utterance_id, child.reply_to
FROM utterances AS child
ANTI JOIN utterances AS parent
    ON child.reply_to = parent.utterance_id AND child.conversation_no = parent.conversation_no
WHERE child.reply_to IS NOT NULL AND NOT child.reply_absent
