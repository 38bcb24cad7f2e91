-- One row is a turn; one that answers its own speaker now has the addressee of the turn that it continues.
-- Grain: turn_id.
SELECT
    turns.* REPLACE (
        CASE WHEN c.turn_id IS NULL THEN turns.addressee ELSE c.addressee END AS addressee,
        CASE WHEN c.turn_id IS NULL OR c.addressee IS NOT NULL THEN turns.addressee_from END AS addressee_from
    )
FROM turns
LEFT JOIN turns_continued AS c ON turns.turn_id = c.turn_id
