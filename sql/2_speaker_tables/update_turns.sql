-- Replaces the addressees of turns that answer one of their own speaker.
UPDATE turns SET
    addressee = c.addressee,
    addressee_from = CASE WHEN c.addressee IS NOT NULL THEN turns.addressee_from END
FROM turns_continued AS c
WHERE turns.turn_id = c.turn_id
