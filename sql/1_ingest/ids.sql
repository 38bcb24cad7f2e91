-- One row is an id that messages of the dump carry. Grain: utterance_id.
-- keeper is the message that lands under it: the first one that is readable and says who says what.
SELECT
    utterance_id,
    min(row_no) AS row_no,
    min(row_no) FILTER (WHERE trim(text, chr(9) || chr(10) || chr(13) || ' ') <> '' AND trim(speaker) <> '')
        AS keeper,
    count(*) AS messages
FROM raw
WHERE record = 'message' AND problem IS NULL AND utterance_id IS NOT NULL
GROUP BY utterance_id
