-- One row is an id that messages of several conversations have, with the number of conversations. Grain: utterance_id.
-- Ids that only one message has, in most dumps nearly all, are left out before conversations are compared.
WITH shared AS (
    SELECT utterance_id FROM ids WHERE messages > 1
)

SELECT raw.utterance_id, count(DISTINCT raw.conversation_id) AS conversations
FROM raw
SEMI JOIN shared ON raw.utterance_id = shared.utterance_id
WHERE
    raw.record = 'message'
    AND coalesce(raw.reason, 'forgotten') = 'forgotten'
GROUP BY raw.utterance_id
HAVING min(raw.conversation_id) <> max(raw.conversation_id)
