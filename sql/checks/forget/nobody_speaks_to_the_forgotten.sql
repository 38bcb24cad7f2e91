-- table: utterances
-- An addressee who does not speak may be anyone; one who is forgotten may not be there.
SELECT u.utterance_id
FROM utterances AS u
SEMI JOIN forgotten_people AS f ON u.speaker = f.id OR u.addressee = f.id
