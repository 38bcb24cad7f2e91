-- table: responses
-- A context is a chain of turns of the response's conversation: each answers the one before it, and the response
-- answers the last one.
-- Another check ensures that answers stay in their conversation. So where each turn answers the one before it, the
-- turns just before a response are such a chain, unless the conversation has fewer; other contexts are followed.
WITH threads AS (
    SELECT DISTINCT turn_id - turn AS start
    FROM compared_turns
    WHERE turn > 0 AND answers IS DISTINCT FROM turn_id - 1
),

compared AS (
    SELECT
        response_id,
        len(context) AS turns,
        context = range(response_id - len(context), response_id) AS is_run,
        (hash(conversation_id) >> 32)::UINTEGER AS conversation
    FROM responses
),

others AS (
    SELECT r.response_id, r.turns, r.conversation <> t.conversation AS is_elsewhere
    FROM compared AS r
    INNER JOIN compared_turns AS t ON r.response_id = t.turn_id
    WHERE
        NOT r.is_run
        OR r.turns NOT BETWEEN 1 AND t.turn
        OR r.conversation <> t.conversation
        OR t.turn_id - t.turn IN (SELECT threads.start FROM threads)
),

steps AS (
    SELECT response_id, unnest(context) AS turn_id, unnest(list_append(context[2:], response_id)) AS next_turn
    FROM responses
    WHERE response_id IN (SELECT others.response_id FROM others)
)

SELECT s.response_id, s.turn_id, s.next_turn
FROM steps AS s
LEFT JOIN compared_turns AS t ON s.next_turn = t.turn_id
WHERE t.answers IS DISTINCT FROM s.turn_id
UNION ALL
SELECT response_id, NULL AS turn_id, NULL AS next_turn
FROM others
WHERE turns = 0 OR is_elsewhere
