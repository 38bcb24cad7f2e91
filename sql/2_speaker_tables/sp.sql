-- One row is a member of SP_A: A's turns towards one partner in a split. Grain: set_id, position.
-- Empty if speaker ids name seats: the same id in other conversations is another person.
SELECT
    $corpus AS corpus,
    sp_set AS set_id,
    sp_position AS position,
    sp_size AS size,
    turn_id
FROM turn_sets
WHERE $speaker_scope = 'person' AND sp_set IS NOT NULL
