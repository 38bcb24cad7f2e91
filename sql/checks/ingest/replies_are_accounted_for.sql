-- table: utterances
-- A reply answers a message that landed or one that is in quarantine, never one that the dump does not have.
SELECT u.*
FROM utterances AS u
ANTI JOIN utterances AS parent ON u.corpus = parent.corpus AND u.reply_to = parent.utterance_id
WHERE
    u.reply_to IS NOT NULL
    AND u.reply_to NOT IN (
        SELECT json_extract_string(decode(q.raw), '$.utterance_id')
        FROM quarantine AS q
        WHERE q.corpus = u.corpus AND q.reason NOT IN ('broken_json', 'undecodable', 'malformed_row')
    )
