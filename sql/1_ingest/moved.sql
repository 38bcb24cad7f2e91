-- One row is a message of a conversation in which a reply precedes the message that it replies to, with its place in
-- an order in which none does. Grain: row_no. Scratch.
-- A reply that comes too early moves to just after the last message of its chain; everything else keeps its order. A
-- reply to a message that has not landed counts as one to the first message that replies to nothing, which opens the
-- conversation, as a submission of Reddit does.
-- Each round doubles the length of the jump along the chain: last_no is the last message on the way, steps its length.
WITH RECURSIVE early AS (
    SELECT child.conversation_no
    FROM linked AS child
    INNER JOIN linked AS parent
        ON child.parent_no = parent.row_no AND child.conversation_no = parent.conversation_no
    WHERE child.parent_no > child.row_no
),

suspect AS (
    SELECT
        child.row_no,
        child.conversation_no,
        coalesce(
            parent.row_no,
            CASE
                WHEN child.is_reply
                    THEN min(child.row_no) FILTER (WHERE NOT child.is_reply) OVER (PARTITION BY child.conversation_no)
            END
        ) AS parent_no
    FROM linked AS child
    LEFT JOIN linked AS parent ON child.parent_no = parent.row_no AND child.conversation_no = parent.conversation_no
    WHERE child.conversation_no IN (SELECT early.conversation_no FROM early)
),

rounds AS (
    SELECT cast(ceil(log2(count(*) + 1)) AS BIGINT) AS needed FROM suspect
),

jumps AS (
    SELECT
        row_no AS source,
        parent_no AS target,
        cast(parent_no IS NOT NULL AS BIGINT) AS steps,
        greatest(row_no, coalesce(parent_no, row_no)) AS last_no,
        0 AS done
    FROM suspect
    UNION ALL
    SELECT
        a.source,
        b.target,
        a.steps + coalesce(b.steps, 0) AS steps,
        greatest(a.last_no, coalesce(b.last_no, a.last_no)) AS last_no,
        a.done + 1 AS done
    FROM jumps AS a
    LEFT JOIN jumps AS b ON a.target = b.source
    WHERE a.done < (SELECT needed FROM rounds)
),

ordered AS (
    SELECT
        s.conversation_no,
        s.row_no,
        row_number() OVER (PARTITION BY s.conversation_no ORDER BY j.last_no, j.steps, s.row_no) AS rank
    FROM suspect AS s
    INNER JOIN jumps AS j ON s.row_no = j.source
    WHERE j.done = (SELECT needed FROM rounds)
),

-- The messages of the conversation get the places that they had, in the new order.
vacant AS (
    SELECT conversation_no, row_no AS place, row_number() OVER (PARTITION BY conversation_no ORDER BY row_no) AS rank
    FROM suspect
)

SELECT ordered.row_no, vacant.place
FROM ordered
INNER JOIN vacant ON ordered.conversation_no = vacant.conversation_no AND ordered.rank = vacant.rank
