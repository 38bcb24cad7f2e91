-- One row is a record of the dump whose ids of conversations start anew in each of its files: FILE/ID. Grain: row_no.
SELECT * REPLACE (source || '/' || conversation_id AS conversation_id)
FROM without_files
