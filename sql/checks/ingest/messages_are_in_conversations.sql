-- table: conversations
-- The message count of a conversation equals the messages that landed in it.
SELECT c.corpus, c.conversation_id, c.messages
FROM conversations AS c
LEFT JOIN (
    SELECT corpus, conversation_no, count(*) AS messages FROM utterances GROUP BY corpus, conversation_no
) AS u ON c.corpus = u.corpus AND c.conversation_no = u.conversation_no
WHERE c.messages IS DISTINCT FROM u.messages
