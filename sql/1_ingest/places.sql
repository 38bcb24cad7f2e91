-- One row is a message that lands, with its position in its conversation. Grain: row_no. Scratch.
-- A message joins the one before it, of the same speaker, into a turn where both belong to one chain: where it does not
-- say what it replies to, replies to that one, or to what that one answers: what it replies to, or else the message
-- before it.
WITH ordered AS (
    SELECT
        linked.* EXCLUDE (parent_no),
        coalesce(own.place, linked.row_no) AS place,
        coalesce(parents.place, linked.parent_no) AS parent
    FROM linked
    LEFT JOIN moved AS own ON linked.row_no = own.row_no
    LEFT JOIN moved AS parents ON linked.parent_no = parents.row_no
),

marked AS (
    SELECT
        *,
        row_number() OVER by_place - 1 AS position,
        coalesce(
            speaker <> lag(speaker) OVER by_place
            OR (
                is_reply
                AND parent IS DISTINCT FROM lag(place) OVER by_place
                AND coalesce(
                    parent <> CASE
                        WHEN lag(is_reply) OVER by_place THEN lag(parent) OVER by_place
                        ELSE lag(place, 2) OVER by_place
                    END,
                    lag(row_no) OVER by_place >= 0
                )
            ),
            FALSE
        )::BIGINT AS opens_turn,
        time < max(time) OVER (
            PARTITION BY conversation_no ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS time_backwards
    FROM ordered
    WINDOW by_place AS (PARTITION BY conversation_no ORDER BY place)
),

numbered AS (
    SELECT
        *,
        coalesce(sum(opens_turn) OVER (PARTITION BY conversation_no ORDER BY place), 0)::BIGINT AS turn
    FROM marked
),

-- Turns whose first message is a reply.
replying AS (
    SELECT n.conversation_no, n.turn, p.turn AS answers
    FROM numbered AS n
    LEFT JOIN numbered AS p ON n.parent = p.place
    WHERE n.is_reply AND (n.opens_turn = 1 OR n.position = 0)
)

SELECT
    n.row_no,
    n.conversation_no,
    n.position,
    n.turn,
    CASE WHEN r.turn IS NULL THEN nullif(n.turn - 1, -1) ELSE r.answers END AS answers,
    n.is_reply AND n.parent IS NULL AS reply_absent,
    coalesce(n.time_backwards, FALSE) AS time_backwards
FROM numbered AS n
LEFT JOIN replying AS r ON n.conversation_no = r.conversation_no AND n.turn = r.turn
