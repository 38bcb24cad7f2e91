-- One row is a remaining message with its position among the remaining ones. Grain: utterance_id.
-- Positions are those that an ingest without the forgotten messages would give (1_ingest/places).
WITH kept AS (
    SELECT * FROM utterances WHERE corpus = $corpus AND NOT list_contains($people, speaker)
),

ranked AS (
    SELECT conversation_no, row_number() OVER (ORDER BY conversation_no) - 1 AS rank
    FROM kept
    GROUP BY conversation_no
),

marked AS (
    SELECT
        conversation_no,
        position,
        row_number() OVER (PARTITION BY conversation_no ORDER BY position) - 1 AS place,
        (speaker <> lag(speaker) OVER (PARTITION BY conversation_no ORDER BY position))::BIGINT AS opens_turn,
        coalesce(
            time < max(time) OVER (
                PARTITION BY conversation_no ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            false
        ) AS time_backwards
    FROM kept
),

placed AS (
    SELECT
        *, coalesce(sum(opens_turn) OVER (PARTITION BY conversation_no ORDER BY position), 0)::BIGINT AS turn
    FROM marked
),

accounted AS (
    SELECT utterance_id FROM kept
    UNION
    SELECT
        CASE
            WHEN reason NOT IN ('broken_json', 'undecodable', 'malformed_row') AND octet_length(raw) > 0
                THEN json_extract_string(decode(raw), '$.utterance_id')
        END AS utterance_id
    FROM kept_quarantine
)

SELECT
    kept.corpus,
    kept.utterance_id,
    kept.conversation_id,
    ranked.rank AS conversation_no,
    placed.place AS position,
    placed.turn,
    kept.speaker,
    CASE WHEN NOT list_contains($people, kept.addressee) THEN kept.addressee END AS addressee,
    accounted.utterance_id AS reply_to,
    kept.text,
    kept.time,
    placed.time_backwards,
    kept.metadata
FROM kept
INNER JOIN ranked ON kept.conversation_no = ranked.conversation_no
INNER JOIN placed ON kept.conversation_no = placed.conversation_no AND kept.position = placed.position
LEFT JOIN accounted ON kept.reply_to = accounted.utterance_id
