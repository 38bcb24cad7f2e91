-- table: quarantine
-- A forgotten message is counted and nothing else: its row holds none of it.
SELECT row_no, octet_length(raw) AS bytes
FROM quarantine
WHERE reason = 'forgotten' AND octet_length(raw) > 0
