-- One row is a landed message of the people to forget. Grain: conversation_no, position.
SELECT conversation_no, position, text
FROM utterances
WHERE corpus = $corpus AND list_contains($people, speaker)
