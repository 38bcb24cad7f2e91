-- One row is an id that messages of the dump carry. Grain: utterance_id.
-- keeper is the message that lands under it: the first one that could land by itself.
-- A forgotten message is known by its id alone, so that replies to it are accounted for.
SELECT
    utterance_id,
    min(row_no) AS row_no,
    min(row_no) FILTER (WHERE reason IS NULL) AS keeper,
    count(*) AS messages
FROM raw
WHERE record = 'message' AND (problem IS NULL OR problem = 'forgotten') AND utterance_id IS NOT NULL
GROUP BY utterance_id
