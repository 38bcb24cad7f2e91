-- One row is a member of SS_A: all turns of A in a split. Grain: set_id, position.
-- Empty where a speaker id names a seat: its turns in different conversations are different people's.
SELECT
    t.corpus,
    s.ss_set AS set_id,
    s.ss_position AS position,
    s.ss_size AS size,
    t.turn_id,
    t.speaker,
    t.split
FROM turn_sets AS s
INNER JOIN turns AS t ON s.turn_id = t.turn_id
WHERE $speaker_scope = 'person'
