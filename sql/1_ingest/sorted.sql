-- One row is a record of the dump, those of a conversation together, in the order of the first message that lands.
-- Grain: row_no. Under an id that several messages have, the first one without a reason of its own lands.
WITH refused AS (
    SELECT raw.row_no
    FROM raw
    INNER JOIN (SELECT * FROM ids WHERE messages > 1) AS shared ON raw.utterance_id = shared.utterance_id
    WHERE raw.record = 'message' AND raw.reason IS NULL AND raw.row_no > shared.keeper
),

marked AS (
    SELECT raw.* REPLACE (CASE WHEN refused.row_no IS NULL THEN raw.reason ELSE 'duplicate_id' END AS reason)
    FROM raw
    LEFT JOIN refused ON raw.row_no = refused.row_no
),

firsts AS (
    SELECT conversation_id, min(row_no) AS first
    FROM marked
    WHERE record = 'message' AND reason IS NULL
    GROUP BY conversation_id
)

SELECT marked.*
FROM marked
LEFT JOIN firsts ON marked.conversation_id = firsts.conversation_id
ORDER BY firsts.first ASC NULLS LAST, marked.row_no ASC
