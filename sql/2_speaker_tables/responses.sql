-- One row is a response: a turn of a person that answers another one. Grain: response_id.
WITH answering AS NOT MATERIALIZED (
    SELECT * FROM turns WHERE answers IS NOT NULL AND is_person
),

contexts AS (
    SELECT answering.*, range(answering.turn_id - least(answering.turn, $context_turns), answering.turn_id) AS context
    FROM answering
    ANTI JOIN chains ON answering.turn_id = chains.turn_id
    UNION ALL
    SELECT answering.*, chains.context
    FROM answering
    INNER JOIN chains ON answering.turn_id = chains.turn_id
)

SELECT
    corpus,
    turn_id AS response_id,
    context,
    conversation_id,
    speaker,
    addressee,
    split
FROM contexts
