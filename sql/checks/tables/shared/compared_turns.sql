-- One row is a turn, with the columns by which contexts and candidates are compared. Grain: turn_id.
-- Names are compared by their hashes, and ids are 32 bits wide: joins of such rows take a fifth of the disk. A hash has
-- 32 bits where checks seek names that differ: two names with equal hashes then cause no false alarm.
SELECT
    turn_id::INTEGER AS turn_id,
    turn::INTEGER AS turn,
    answers::INTEGER AS answers,
    text_hash,
    (hash(conversation_id) >> 32)::UINTEGER AS conversation,
    hash(speaker) AS speaker,
    (hash(addressee) >> 32)::UINTEGER AS addressee,
    (hash(split) >> 32)::UINTEGER AS split
FROM turns
