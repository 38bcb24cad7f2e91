-- One row is a record of the dump. Records of one conversation are together; conversations are in the order of their
-- first message that can land. Of messages with one id only the first that can land does. Grain: row_no.
WITH repeated AS (
    SELECT raw.row_no
    FROM raw
    INNER JOIN ids ON raw.utterance_id = ids.utterance_id
    WHERE ids.messages > 1 AND raw.record = 'message' AND raw.reason IS NULL AND raw.row_no > ids.keeper
),

firsts AS (
    SELECT conversation_id, min(row_no) AS first
    FROM raw
    ANTI JOIN repeated ON raw.row_no = repeated.row_no
    WHERE record = 'message' AND reason IS NULL
    GROUP BY conversation_id
)

SELECT raw.* REPLACE (CASE WHEN repeated.row_no IS NULL THEN raw.reason ELSE 'duplicate_id' END AS reason)
FROM raw
LEFT JOIN firsts ON raw.conversation_id = firsts.conversation_id
LEFT JOIN repeated ON raw.row_no = repeated.row_no
ORDER BY firsts.first ASC NULLS LAST, raw.row_no ASC
