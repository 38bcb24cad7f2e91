-- One row is the other corpus that shares the most conversations, by id and first text, with the dump. Grain: corpus.
SELECT p.corpus, count(*) AS conversations, (SELECT count(*) FROM main.conversations) AS of_conversations
FROM published.utterances AS p
INNER JOIN main.utterances AS u ON p.conversation_id = u.conversation_id AND p.text = u.text
WHERE p.corpus <> $corpus AND p.position = 0 AND u.position = 0
GROUP BY p.corpus
ORDER BY conversations DESC, p.corpus ASC
LIMIT 1
