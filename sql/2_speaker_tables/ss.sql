-- One row is a member of SS_A: all turns of A in a split. Grain: set_id, position.
-- Empty where a speaker id names a seat: its turns in different conversations are different people's.
SELECT
    $corpus AS corpus,
    ss_set AS set_id,
    ss_position AS position,
    ss_size AS size,
    turn_id
FROM turn_sets
WHERE $speaker_scope = 'person'
