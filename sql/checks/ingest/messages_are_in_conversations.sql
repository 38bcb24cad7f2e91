-- table: conversations
-- A conversation counts the messages that landed in it.
SELECT c.corpus, c.conversation_id, c.messages
FROM conversations AS c
INNER JOIN (
    SELECT corpus, conversation_id, count(*) AS messages FROM utterances GROUP BY corpus, conversation_id
) AS u ON c.corpus = u.corpus AND c.conversation_id = u.conversation_id
WHERE c.messages <> u.messages
