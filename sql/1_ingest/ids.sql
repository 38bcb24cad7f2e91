-- One row is an id of messages that land or are forgotten. Grain: utterance_id.
-- keeper: row_no of the message that lands under the id, null if none does. messages: number of messages with the id.
SELECT
    utterance_id,
    min(row_no) FILTER (WHERE reason IS NULL) AS keeper,
    count(*) AS messages
FROM raw
WHERE record = 'message' AND coalesce(reason, 'forgotten') = 'forgotten' AND utterance_id IS NOT NULL
GROUP BY utterance_id
