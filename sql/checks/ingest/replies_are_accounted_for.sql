-- table: utterances
-- A reply refers to a message that landed or is in quarantine, never to one that the dump lacks.
-- An ingest lands one corpus, so ids are compared without their corpus.
WITH unanswered AS (
    SELECT child.corpus, child.utterance_id, child.reply_to
    FROM utterances AS child
    ANTI JOIN utterances AS parent ON child.reply_to = parent.utterance_id
    WHERE child.reply_to IS NOT NULL
),

quarantined AS (
    SELECT
        CASE
            WHEN reason NOT IN ('broken_json', 'undecodable', 'malformed_row') AND octet_length(raw) > 0
                THEN json_extract_string(decode(raw), '$.utterance_id')
        END AS utterance_id
    FROM quarantine
)

SELECT unanswered.*
FROM unanswered
ANTI JOIN quarantined ON unanswered.reply_to = quarantined.utterance_id
