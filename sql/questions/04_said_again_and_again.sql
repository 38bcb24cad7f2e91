-- What do people say again and again?
-- One row is a text; turns that differ only in case and surrounding blanks count as one text. As negatives such turns
-- are hardly wrong; as responses they fit almost any context.
SELECT
    corpus,
    min(text) AS text,
    count(*) AS turns,
    count(DISTINCT speaker) AS speakers,
    count(DISTINCT conversation_id) AS conversations
FROM turns
WHERE is_person
GROUP BY corpus, text_hash
ORDER BY turns DESC, text ASC
LIMIT 20
