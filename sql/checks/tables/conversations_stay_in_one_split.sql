-- table: turns
-- A conversation in two splits would leak its content from one to the other. In a very long one this applies to its
-- first 1,000 turns, and to each 100 turns after them.
SELECT
    corpus,
    conversation_id,
    min(split) AS first_split,
    max(split) AS last_split
FROM turns
GROUP BY corpus, conversation_id, CASE WHEN turn < 1_000 THEN 0 ELSE turn // 100 END
HAVING min(split) <> max(split)
