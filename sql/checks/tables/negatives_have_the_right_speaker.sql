-- table: candidates
-- Candidates of SC, SP and SS are turns of the responder, those of Rand never are.
SELECT response_id, kind, k, turn_id
FROM misplaced_negatives
WHERE has_wrong_speaker
