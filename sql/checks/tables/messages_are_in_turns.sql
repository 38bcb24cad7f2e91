-- table: turns
-- The turns of a conversation hold as many messages as landed in it.
SELECT t.conversation_id, t.messages, c.messages AS landed
FROM compared_conversations AS t
FULL OUTER JOIN (SELECT * FROM conversations WHERE corpus IN (SELECT DISTINCT corpus FROM turns)) AS c
    ON t.corpus = c.corpus AND t.conversation_id = c.conversation_id
WHERE t.messages IS DISTINCT FROM c.messages
