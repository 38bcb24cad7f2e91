-- What do people say again and again?
-- Turns that are the same but for case and blanks around them. As negatives, such turns are hardly wrong; as responses,
-- they fit almost anything.
SELECT
    corpus,
    min(text) AS text,
    count(*) AS turns,
    count(DISTINCT speaker) AS speakers,
    count(DISTINCT conversation_id) AS conversations
FROM turns
GROUP BY corpus, text_hash
ORDER BY turns DESC, text ASC
LIMIT 20
