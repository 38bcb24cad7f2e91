-- One row is a record of the dump that never landed, under its number there, or was forgotten since. Grain: row_no.
SELECT q.* REPLACE (n.number AS row_no)
FROM quarantine AS q
INNER JOIN numbers AS n ON q.row_no = n.row_no
