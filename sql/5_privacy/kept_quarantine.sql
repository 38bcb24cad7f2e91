-- One row is a record of the dump that never landed, or was forgotten since. Grain: row_no.
-- Messages that had landed have no known rank in the dump; they are numbered from -1 downwards.
SELECT
    corpus,
    row_no,
    record,
    file,
    line,
    CASE WHEN list_contains($theirs::BIGINT[], row_no) THEN 'forgotten' ELSE reason END AS reason,
    CASE WHEN list_contains($theirs::BIGINT[], row_no) THEN ''::BLOB ELSE raw END AS raw
FROM quarantine
WHERE corpus = $corpus
UNION ALL
SELECT
    $corpus AS corpus,
    coalesce((SELECT least(min(row_no), 0) FROM quarantine WHERE corpus = $corpus), 0)
    - row_number() OVER (ORDER BY conversation_no, position) AS row_no,
    'message' AS record,
    '' AS file,
    NULL AS line,
    'forgotten' AS reason,
    ''::BLOB AS raw
FROM forgotten_messages
