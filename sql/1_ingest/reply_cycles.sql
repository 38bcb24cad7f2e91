-- One row is a message in a cycle of replies. Grain: row_no.
-- A cycle contains a reply to a later message, so a dump without such replies has none. Each round doubles the length
-- of the jump along the chain of replies: after log2(n) rounds only endless chains remain, and all of them lead into
-- cycles of any length.
WITH RECURSIVE suspect AS (
    SELECT row_no FROM replies WHERE EXISTS (SELECT 1 FROM replies AS forward WHERE forward.parent_no > forward.row_no)
),

rounds AS (
    SELECT cast(ceil(log2(count(*) + 1)) AS BIGINT) + 1 AS needed FROM suspect
),

jumps AS (
    SELECT replies.row_no AS source, replies.parent_no AS target, 0 AS done
    FROM replies
    SEMI JOIN suspect ON replies.row_no = suspect.row_no
    WHERE replies.parent_no <> replies.row_no
    UNION ALL
    SELECT a.source, b.target, a.done + 1 AS done
    FROM jumps AS a
    INNER JOIN jumps AS b ON a.target = b.source
    WHERE a.done < (SELECT needed FROM rounds)
)

SELECT DISTINCT target AS row_no
FROM jumps
WHERE done = (SELECT needed FROM rounds)
