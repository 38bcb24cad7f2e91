-- corpora
SELECT
    c.corpus, c.format, c.conversations, c.utterances, c.quarantined, c.speakers,
    nullif(count(t.turn_id), 0) AS turns, c.speaker_scope
FROM corpora AS c LEFT JOIN turns AS t ON c.corpus = t.corpus
GROUP BY ALL ORDER BY c.corpus
