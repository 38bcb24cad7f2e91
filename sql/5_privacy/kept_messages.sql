-- One row is a remaining message with its position among the remaining ones. Grain: utterance_id.
WITH kept AS (
    SELECT *, conversation_no * 4294967296 + position AS row_no
    FROM utterances
    WHERE corpus = $corpus AND NOT list_contains($people, speaker)
),

ranked AS (
    SELECT conversation_no, row_number() OVER (ORDER BY conversation_no) - 1 AS rank
    FROM kept
    GROUP BY conversation_no
),

-- A reply to a forgotten message loses its reference; those to messages that never landed keep theirs.
forgotten AS (
    SELECT utterance_id FROM utterances WHERE corpus = $corpus AND list_contains($people, speaker)
    UNION
    SELECT json_extract_string(decode(raw), '$.utterance_id') AS utterance_id
    FROM quarantine
    WHERE corpus = $corpus AND list_contains($theirs::BIGINT[], row_no)
)

SELECT
    kept.corpus,
    kept.utterance_id,
    kept.conversation_id,
    ranked.rank AS conversation_no,
    placed.position,
    placed.turn,
    placed.answers,
    kept.speaker,
    CASE WHEN NOT list_contains($people, kept.addressee) THEN kept.addressee END AS addressee,
    CASE WHEN NOT list_contains($people, kept.addressee) THEN kept.addressee_from END AS addressee_from,
    kept.is_person,
    CASE WHEN forgotten.utterance_id IS NULL OR NOT placed.reply_absent THEN kept.reply_to END AS reply_to,
    placed.reply_absent,
    kept.text,
    kept.time,
    placed.time_backwards,
    kept.metadata
FROM kept
INNER JOIN ranked ON kept.conversation_no = ranked.conversation_no
INNER JOIN places AS placed ON kept.row_no = placed.row_no
LEFT JOIN forgotten ON kept.reply_to = forgotten.utterance_id
