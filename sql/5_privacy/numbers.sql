-- One row is a record of `landed`, with its number in the quarantine and why it did not land. Grain: row_no. Scratch.
-- Messages that had landed have no known rank in the dump; they are numbered below 0.
WITH before AS (
    SELECT row_no, reason FROM published.quarantine
    WHERE corpus = $corpus
),

counted AS (
    SELECT
        coalesce((SELECT least(min(row_no), 0) FROM before), 0) AS lowest,
        (SELECT utterances FROM published.corpora WHERE corpus = $corpus) AS messages
)

SELECT position.row_no, c.lowest - 1 - position.row_no AS number, NULL AS reason
FROM counted AS c
CROSS JOIN unnest(range(c.messages)) AS position (row_no)
UNION ALL
SELECT c.messages + row_number() OVER (ORDER BY b.row_no) - 1 AS row_no, b.row_no AS number, b.reason
FROM counted AS c
CROSS JOIN before AS b
