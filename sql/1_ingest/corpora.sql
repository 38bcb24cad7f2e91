-- One row is the landed dump. Grain: corpus.
SELECT
    $corpus AS corpus,
    $format AS format,
    $source AS source,
    $sha256 AS sha256,
    $bytes AS bytes,
    $messages AS messages_read,
    (SELECT count(*) FROM utterances) AS utterances,
    (SELECT count(*) FROM quarantine WHERE record = 'message') AS quarantined,
    (SELECT count(*) FROM conversations) AS conversations,
    (SELECT count(DISTINCT speaker) FROM utterances) AS speakers,
    (SELECT count(*) FROM utterances WHERE time_backwards) AS time_backwards,
    $speaker_scope AS speaker_scope,
    $landed_at::TIMESTAMP AS landed_at
