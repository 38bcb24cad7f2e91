-- One row is a member of SS_A: all turns of A in a split. Grain: set_id, position.
-- Empty if speaker ids name seats: the same id in other conversations is another person.
SELECT
    $corpus AS corpus,
    ss_set AS set_id,
    ss_position AS position,
    ss_size AS size,
    turn_id
FROM turn_sets
WHERE $speaker_scope = 'person'
