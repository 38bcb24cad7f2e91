-- table: quarantine
-- Of a forgotten message only its count remains: its quarantined row is empty.
SELECT row_no, octet_length(raw) AS bytes
FROM quarantine
WHERE reason = 'forgotten' AND octet_length(raw) > 0
