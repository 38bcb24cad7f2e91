-- One row is a record of the dump with FILE/ID as its conversation's id, as ids start anew in each file. Grain: row_no.
SELECT * REPLACE (source || '/' || conversation_id AS conversation_id)
FROM without_files
