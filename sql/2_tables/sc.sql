-- One row is a member of SC_A: A's turns in one conversation. Grain: set_id, position.
SELECT
    t.corpus,
    s.sc_set AS set_id,
    s.sc_position AS position,
    s.sc_size AS size,
    t.turn_id,
    t.speaker,
    t.split
FROM turn_sets AS s
INNER JOIN turns AS t ON s.turn_id = t.turn_id
