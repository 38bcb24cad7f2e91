-- One row is the landed corpus without the forgotten messages. Grain: corpus.
SELECT
    c.* REPLACE (
        (SELECT count(*) FROM kept_messages) AS utterances,
        (SELECT count(*) FROM kept_quarantine WHERE record = 'message') AS quarantined,
        (SELECT count(*) FROM kept_conversations) AS conversations,
        (SELECT count(DISTINCT speaker) FROM kept_messages) AS speakers,
        (SELECT count(*) FROM kept_messages WHERE time_backwards) AS time_backwards
    )
FROM corpora AS c
WHERE c.corpus = $corpus
