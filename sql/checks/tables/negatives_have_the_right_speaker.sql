-- table: candidates
-- Candidates of SC, SP and SS are turns of the responder, those of Rand never are.
SELECT c.*
FROM candidates AS c
INNER JOIN responses AS r ON c.response_id = r.response_id
INNER JOIN turns AS t ON c.turn_id = t.turn_id
WHERE
    (c.kind = 'Rand' AND t.speaker = r.speaker)
    OR (c.kind <> 'Rand' AND t.speaker <> r.speaker)
    OR (c.kind = 'SC' AND t.conversation_id <> r.conversation_id)
    OR (c.kind = 'SP' AND t.addressee IS DISTINCT FROM r.addressee)
