-- One row is a message that does not land, with the reason: it did not land before, or is forgotten. Grain: row_no.
SELECT raw.row_no, coalesce(raw.problem, n.reason) AS reason
FROM raw
INNER JOIN numbers AS n ON raw.row_no = n.row_no
WHERE raw.record = 'message' AND (raw.problem IS NOT NULL OR n.reason IS NOT NULL)
