-- One row is a candidate that may break a check of negatives, and which ones. Grain: response_id, kind, k.
-- The checks read it instead of joining all candidates with their responses and turns, each again.
-- Near the context are the turns from its first to its last; in a thread, some of them are of other chains.
WITH answered AS (
    SELECT
        t.turn_id,
        t.text_hash,
        r.response_id IS NOT NULL AS is_known,
        list_min(r.context) AS context_from,
        list_max(r.context) AS context_to,
        r.conversation_id,
        r.speaker,
        r.addressee,
        r.split
    FROM turns AS t
    LEFT JOIN responses AS r ON t.turn_id = r.response_id
),

placed AS (
    SELECT
        c.*,
        c.kind <> 'GT' AND c.turn_id BETWEEN r.context_from AND r.context_to AS is_near_context,
        c.kind <> 'GT' AND (c.turn_id = c.response_id OR t.text_hash = r.text_hash) AS is_response,
        t.split <> r.split AS is_of_other_split,
        CASE c.kind
            WHEN 'Rand' THEN t.speaker = r.speaker
            WHEN 'SC' THEN t.speaker <> r.speaker OR t.conversation_id <> r.conversation_id
            WHEN 'SP' THEN t.speaker <> r.speaker OR (r.is_known AND t.addressee IS DISTINCT FROM r.addressee)
            ELSE t.speaker <> r.speaker
        END AS has_wrong_speaker
    FROM candidates AS c
    INNER JOIN answered AS r ON c.response_id = r.turn_id
    INNER JOIN turns AS t ON c.turn_id = t.turn_id
)

SELECT *
FROM placed
WHERE is_near_context OR is_response OR is_of_other_split OR has_wrong_speaker
