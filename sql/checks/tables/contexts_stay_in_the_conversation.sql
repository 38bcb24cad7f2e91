-- table: responses
-- A context is a chain of turns of the response's conversation, each answering the one before it, and the response
-- the last one.
WITH steps AS (
    SELECT
        response_id,
        conversation_id,
        unnest(context) AS turn_id,
        unnest(list_append(context[2:], response_id)) AS next_turn
    FROM responses
)

SELECT s.response_id, s.turn_id, s.next_turn
FROM steps AS s
LEFT JOIN turns AS context_turn ON s.turn_id = context_turn.turn_id
LEFT JOIN turns AS answer ON s.next_turn = answer.turn_id
WHERE
    context_turn.conversation_id IS DISTINCT FROM s.conversation_id
    OR answer.answers IS DISTINCT FROM s.turn_id
    OR s.turn_id >= s.next_turn
UNION ALL
SELECT response_id, NULL AS turn_id, NULL AS next_turn
FROM responses
WHERE len(context) = 0
