-- One row is a run of consecutive records of one conversation, with the conversation's rank. Grain: run_no.
-- In most dumps conversations are contiguous, so runs are few, and messages are not sorted by a textual id.
WITH runs AS (
    SELECT raw.run_no, any_value(raw.conversation_id) AS conversation_id, min(raw.row_no) AS row_no
    FROM raw
    ANTI JOIN rejected ON raw.row_no = rejected.row_no
    WHERE raw.record = 'message'
    GROUP BY raw.run_no
),

ranked AS (
    SELECT conversation_id, row_number() OVER (ORDER BY min(row_no)) - 1 AS conversation_no
    FROM runs
    GROUP BY conversation_id
)

SELECT runs.run_no, ranked.conversation_no
FROM runs
INNER JOIN ranked ON runs.conversation_id = ranked.conversation_id
