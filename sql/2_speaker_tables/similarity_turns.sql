-- One row is a turn in a set whose similarity is measured. Grain: turn_id. Scratch.
WITH members AS (
    SELECT set_id, turn_id FROM sc
    UNION ALL
    SELECT set_id, turn_id FROM sp
    UNION ALL
    SELECT set_id, turn_id FROM ss
    UNION ALL
    SELECT set_id, turn_id FROM rand
)

SELECT DISTINCT members.turn_id
FROM members
-- A set has the id of its speaker's first turn in it.
SEMI JOIN similarity_owners ON members.set_id = similarity_owners.turn_id
