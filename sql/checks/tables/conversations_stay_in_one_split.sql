-- table: turns
-- A conversation in two splits would leak its content from one to the other.
SELECT corpus, conversation_id, first_split, last_split
FROM compared_conversations
WHERE first_split <> last_split
