-- table: responses
-- A context lies within the conversation of its response.
SELECT r.*
FROM responses AS r
INNER JOIN turns AS first ON r.context_from = first.turn_id
WHERE
    first.conversation_id <> r.conversation_id
    OR r.context_to <> r.response_id - 1
    OR r.context_from > r.context_to
