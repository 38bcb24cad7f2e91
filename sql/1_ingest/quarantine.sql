-- One row is a record of the dump that did not land, unabridged, with the reason. Grain: row_no.
-- Conversations in which only forgotten people spoke are left out.
WITH described AS (
    SELECT raw.row_no, 'no_messages' AS reason
    FROM raw
    ANTI JOIN conversations ON raw.conversation_id = conversations.conversation_id
    WHERE raw.record = 'conversation' AND raw.problem IS NULL
    UNION ALL
    SELECT row_no, problem AS reason
    FROM raw
    WHERE record = 'conversation' AND problem IS NOT NULL
),

of_forgotten AS (
    SELECT conversation_id FROM raw WHERE problem = 'forgotten'
),

reasons AS (
    SELECT row_no, reason FROM rejected
    UNION ALL
    SELECT row_no, reason FROM described
)

SELECT
    $corpus AS corpus,
    raw.row_no,
    raw.record,
    raw.file,
    raw.line,
    reasons.reason,
    coalesce(
        raw.raw,
        CASE
            WHEN
                raw.record = 'conversation'
                AND raw.conversation_id IN (SELECT conversation_id FROM of_forgotten)
                THEN encode('')
        END,
        encode(cast(to_json({
            conversation_id: raw.conversation_id, utterance_id: raw.utterance_id, speaker: raw.speaker,
            addressee: raw.addressee,
            reply_to: raw.reply_to,
            text: raw.text,
            time: raw.time,
            metadata: raw.metadata
        }) AS VARCHAR))
    ) AS raw
FROM raw
INNER JOIN reasons ON raw.row_no = reasons.row_no
