-- Replaces the addressees of turns that answer one of their own speaker.
UPDATE turns SET addressee = c.addressee
FROM turns_continued AS c
WHERE turns.turn_id = c.turn_id
