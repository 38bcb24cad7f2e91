-- One row is a record of the dump, those of a conversation together, in the order of their first message without a
-- reason of its own. Grain: row_no. Of the messages under one id, the first one without such a reason lands.
WITH firsts AS (
    SELECT conversation_id, min(row_no) AS first
    FROM raw
    WHERE record = 'message' AND reason IS NULL
    GROUP BY conversation_id
),

shared AS (
    SELECT utterance_id, keeper FROM ids
    WHERE messages > 1
)

SELECT
    raw.* REPLACE (
        CASE
            WHEN raw.record = 'message' AND raw.reason IS NULL AND raw.row_no > shared.keeper THEN 'duplicate_id'
            ELSE raw.reason
        END AS reason
    )
FROM raw
LEFT JOIN firsts ON raw.conversation_id = firsts.conversation_id
LEFT JOIN shared ON raw.utterance_id = shared.utterance_id
ORDER BY firsts.first ASC NULLS LAST, raw.row_no ASC
