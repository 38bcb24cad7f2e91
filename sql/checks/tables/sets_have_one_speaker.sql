-- table: sc
-- The members of SC_A, SP_A and SS_A are turns of A, the speaker of the turn set_id; those of Rand_A are turns of
-- others. All are of one split, those of SC_A of one conversation, and those of SP_A have one addressee.
SELECT m.kind, m.set_id, m.turn_id
FROM (
    SELECT 'SC' AS kind, set_id::INTEGER AS set_id, turn_id::INTEGER AS turn_id FROM sc
    UNION ALL
    SELECT 'SP' AS kind, set_id::INTEGER AS set_id, turn_id::INTEGER AS turn_id FROM sp
    UNION ALL
    SELECT 'SS' AS kind, set_id::INTEGER AS set_id, turn_id::INTEGER AS turn_id FROM ss
    UNION ALL
    SELECT 'Rand' AS kind, set_id::INTEGER AS set_id, turn_id::INTEGER AS turn_id FROM rand
) AS m
INNER JOIN compared_turns AS t ON m.turn_id = t.turn_id
LEFT JOIN compared_turns AS a ON m.set_id = a.turn_id
WHERE
    a.turn_id IS NULL
    OR a.split <> t.split
    OR (a.speaker = t.speaker) = (m.kind = 'Rand')
    OR (m.kind = 'SC' AND a.conversation <> t.conversation)
    OR (m.kind = 'SP' AND a.addressee <> t.addressee)
