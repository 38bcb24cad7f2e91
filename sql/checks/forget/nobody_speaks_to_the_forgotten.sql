-- table: utterances
-- Forgotten people occur neither as speakers nor as addressees.
SELECT u.utterance_id
FROM utterances AS u
SEMI JOIN forgotten_people AS f ON u.speaker = f.id OR u.addressee = f.id
