-- One row is a turn of a conversation with threads: one in which a turn does not answer the turn before it. context:
-- the turns along the turn's chain of answers, newest last, at most $context_turns. Grain: turn_id. Scratch.
-- In all other conversations a context is the turns just before the response, which needs no search.
WITH RECURSIVE threads AS (
    SELECT DISTINCT turn_id - turn AS conversation
    FROM turns
    WHERE turn > 0 AND answers IS DISTINCT FROM turn_id - 1
),

threaded AS (
    SELECT turn_id, answers
    FROM turns
    WHERE turn_id - turn IN (SELECT conversation FROM threads)
),

steps AS (
    SELECT turn_id, answers AS ancestor, 1 AS step
    FROM threaded
    WHERE answers IS NOT NULL
    UNION ALL
    SELECT s.turn_id, t.answers AS ancestor, s.step + 1 AS step
    FROM steps AS s
    INNER JOIN threaded AS t ON s.ancestor = t.turn_id
    WHERE t.answers IS NOT NULL AND s.step < $context_turns
),

contexts AS (
    SELECT turn_id, list(ancestor ORDER BY ancestor) AS context
    FROM steps
    GROUP BY turn_id
)

SELECT t.turn_id, coalesce(c.context, []) AS context
FROM threaded AS t
LEFT JOIN contexts AS c ON t.turn_id = c.turn_id
