-- table: turns
-- A conversation in two splits would leak its content from one to the other.
SELECT corpus, conversation_id, count(DISTINCT split) AS splits
FROM turns
GROUP BY corpus, conversation_id
HAVING count(DISTINCT split) > 1
