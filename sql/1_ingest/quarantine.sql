-- One row is a record of the dump that did not land, unabridged, with the reason. Grain: row_no.
-- Left out are conversations without row_no: they had landed, and all who spoke in them have been forgotten since.
WITH of_forgotten AS (
    SELECT conversation_id FROM aside WHERE problem = 'forgotten'
)

SELECT
    $corpus AS corpus,
    a.row_no,
    a.record,
    a.file,
    a.line,
    coalesce(a.reason, a.problem, 'no_messages') AS reason,
    coalesce(
        a.raw,
        CASE
            WHEN
                a.record = 'conversation'
                AND a.conversation_id IN (SELECT of_forgotten.conversation_id FROM of_forgotten)
                THEN encode('')
        END,
        encode(cast(to_json({
            conversation_id: a.conversation_id, utterance_id: a.utterance_id, speaker: a.speaker,
            addressee: a.addressee,
            reply_to: a.reply_to,
            text: a.text,
            time: a.time,
            metadata: a.metadata
        }) AS VARCHAR))
    ) AS raw
FROM aside AS a
LEFT JOIN conversations AS c ON a.conversation_id = c.conversation_id
WHERE
    a.row_no IS NOT NULL
    AND (a.record = 'message' OR a.problem IS NOT NULL OR c.conversation_id IS NULL)
ORDER BY a.row_no
