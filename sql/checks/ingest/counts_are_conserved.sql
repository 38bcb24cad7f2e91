-- table: corpora
-- Every message that was read has either landed or is in quarantine: none is lost silently.
SELECT
    c.corpus,
    c.messages_read,
    c.utterances,
    c.quarantined
FROM corpora AS c
WHERE
    c.messages_read <> c.utterances + c.quarantined
    OR c.utterances <> (SELECT count(*) FROM utterances AS u WHERE u.corpus = c.corpus)
    OR c.quarantined <> (SELECT count(*) FROM quarantine AS q WHERE q.corpus = c.corpus AND q.record = 'message')
