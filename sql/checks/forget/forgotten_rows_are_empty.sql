-- table: quarantine
-- Of forgotten messages only their number remains: their quarantined rows are empty.
SELECT row_no, octet_length(raw) AS bytes
FROM quarantine
WHERE reason = 'forgotten' AND octet_length(raw) > 0
