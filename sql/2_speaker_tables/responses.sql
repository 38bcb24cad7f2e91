-- One row is a response: a turn of a person that answers another one. Grain: response_id.
SELECT
    turns.corpus,
    turns.turn_id AS response_id,
    coalesce(
        chains.context, range(turns.turn_id - least(turns.turn, $context_turns), turns.turn_id)
    ) AS context,
    turns.conversation_id,
    turns.speaker,
    turns.addressee,
    turns.split
FROM turns
LEFT JOIN chains ON turns.turn_id = chains.turn_id
WHERE turns.answers IS NOT NULL AND turns.is_person
