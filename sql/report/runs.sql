-- One row is a run.
SELECT * FROM runs ORDER BY started
