-- One row is a turn that answers its own speaker, with the addressee of the turn it continues. Grain: turn_id. Scratch.
WITH RECURSIVE own AS (
    SELECT turn_id, answers FROM turns WHERE addressee = speaker
),

continued AS (
    SELECT own.turn_id, before.addressee
    FROM own
    INNER JOIN turns AS before ON own.answers = before.turn_id
    WHERE before.addressee IS DISTINCT FROM before.speaker
    UNION ALL
    SELECT own.turn_id, continued.addressee
    FROM continued
    INNER JOIN own ON continued.turn_id = own.answers
)

SELECT turn_id, addressee
FROM continued
