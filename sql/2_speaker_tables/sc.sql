-- One row is a member of SC_A: A's turns in one conversation in a split. Grain: set_id, position.
SELECT
    $corpus AS corpus,
    sc_set AS set_id,
    sc_position AS position,
    sc_size AS size,
    turn_id
FROM turn_sets
