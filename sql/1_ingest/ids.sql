-- One row is an id of messages of the dump. Grain: utterance_id.
-- keeper is the message that lands under it: the first one without a problem of its own.
SELECT
    utterance_id,
    min(row_no) FILTER (WHERE reason IS NULL) AS keeper,
    count(*) AS messages
FROM raw
WHERE record = 'message' AND (problem IS NULL OR problem = 'forgotten') AND utterance_id IS NOT NULL
GROUP BY utterance_id
