-- One row is a message that lands, with its position in its conversation. Grain: row_no.
-- Texts are not part of the windows, since sorting them would dominate the running time.
WITH kept AS (
    SELECT raw.row_no, ranks.conversation_no, raw.speaker, raw.time
    FROM raw
    INNER JOIN conversation_ranks AS ranks ON raw.run_no = ranks.run_no
    ANTI JOIN rejected ON raw.row_no = rejected.row_no
    WHERE raw.record = 'message'
),

marked AS (
    SELECT
        row_no,
        conversation_no,
        row_number() OVER (PARTITION BY conversation_no ORDER BY row_no) - 1 AS position,
        (speaker <> lag(speaker) OVER (PARTITION BY conversation_no ORDER BY row_no))::BIGINT AS opens_turn,
        time < max(time) OVER (
            PARTITION BY conversation_no ORDER BY row_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS time_backwards
    FROM kept
)

SELECT
    row_no,
    conversation_no,
    position,
    coalesce(sum(opens_turn) OVER (PARTITION BY conversation_no ORDER BY row_no), 0)::BIGINT AS turn,
    coalesce(time_backwards, false) AS time_backwards
FROM marked
