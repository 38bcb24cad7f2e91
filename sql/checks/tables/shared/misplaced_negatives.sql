-- One row is a candidate that may break a check of negatives, and which checks. Grain: response_id, kind, k.
-- The checks read this table, so that candidates are joined with their responses and turns only once.
-- is_near_context: between the first and the last turn of the context; in threads some such turns are not in it.
-- Only candidates of responses $first to $last: joins of all candidates of a large corpus would fill the disk.
WITH answered AS (
    SELECT
        t.turn_id,
        t.text_hash,
        list_min(r.context)::INTEGER AS context_from,
        list_max(r.context)::INTEGER AS context_to,
        (hash(r.conversation_id) >> 32)::UINTEGER AS conversation,
        hash(r.speaker) AS speaker,
        (hash(r.addressee) >> 32)::UINTEGER AS addressee,
        (hash(r.split) >> 32)::UINTEGER AS split
    FROM responses AS r
    INNER JOIN compared_turns AS t ON r.response_id = t.turn_id
    WHERE r.response_id BETWEEN $first AND $last
),

drawn AS (
    SELECT
        response_id::INTEGER AS response_id,
        try_cast(kind AS ENUM('GT', 'SC', 'SP', 'SS', 'Rand')) AS kind,
        k::INTEGER AS k,
        turn_id::INTEGER AS turn_id
    FROM candidates
    WHERE response_id BETWEEN $first AND $last AND turn_id IS NOT NULL
),

placed AS (
    SELECT
        c.*,
        c.kind <> 'GT' AND c.turn_id BETWEEN r.context_from AND r.context_to AS is_near_context,
        c.kind <> 'GT' AND (c.turn_id = c.response_id OR t.text_hash = r.text_hash) AS is_response,
        t.split <> r.split AS is_of_other_split,
        CASE c.kind
            WHEN 'Rand' THEN t.speaker = r.speaker
            WHEN 'SC' THEN t.speaker <> r.speaker OR t.conversation <> r.conversation
            WHEN 'SP' THEN t.speaker <> r.speaker OR t.addressee <> r.addressee
            ELSE t.speaker <> r.speaker
        END AS has_wrong_speaker
    FROM drawn AS c
    INNER JOIN answered AS r ON c.response_id = r.turn_id
    INNER JOIN compared_turns AS t ON c.turn_id = t.turn_id
)

SELECT *
FROM placed
WHERE is_near_context OR is_response OR is_of_other_split OR has_wrong_speaker
