-- One row is a message of the dump that cannot land, with the first reason that applies. Grain: row_no.
WITH reasons AS (
    SELECT row_no, 1 AS priority, reason FROM raw WHERE reason IS NOT NULL
    UNION ALL
    SELECT raw.row_no, 2 AS priority, 'duplicate_id' AS reason
    FROM raw
    INNER JOIN (SELECT * FROM ids WHERE messages > 1) AS shared ON raw.utterance_id = shared.utterance_id
    WHERE raw.record = 'message' AND raw.problem IS NULL AND raw.row_no > shared.keeper
    UNION ALL
    SELECT row_no, 3 AS priority, 'reply_cycle' AS reason FROM reply_cycles
)

SELECT row_no, arg_min(reason, priority) AS reason
FROM reasons
GROUP BY row_no
