-- One row is a response: a turn that has a turn before it in its conversation. Grain: response_id.
SELECT
    corpus,
    turn_id AS response_id,
    turn_id - least(turn, $context_turns) AS context_from,
    turn_id - 1 AS context_to,
    conversation_id,
    speaker,
    addressee,
    split
FROM turns
WHERE turn > 0
