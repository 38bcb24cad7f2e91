-- table: sc
-- A speaker that is not a person, such as a bot, has no set, is in nobody's set, and gives no response.
WITH no_people AS (
    SELECT turn_id FROM turns WHERE NOT is_person
),

used AS (
    SELECT turn_id FROM sc
    UNION ALL
    SELECT turn_id FROM sp
    UNION ALL
    SELECT turn_id FROM ss
    UNION ALL
    SELECT turn_id FROM rand
    UNION ALL
    SELECT response_id AS turn_id FROM responses
)

SELECT used.turn_id
FROM used
INNER JOIN no_people ON used.turn_id = no_people.turn_id
