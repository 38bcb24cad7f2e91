-- One row is a member of SP_A: A's turns towards one partner in a split. Grain: set_id, position.
-- Empty where a speaker id names a seat: its turns in different conversations are different people's.
SELECT
    corpus,
    min(turn_id) OVER whole AS set_id,
    row_number() OVER ranked - 1 AS position,
    count(*) OVER whole AS size,
    turn_id,
    speaker,
    split
FROM turns
WHERE addressee IS NOT NULL AND $speaker_scope = 'person'
WINDOW
    whole AS (PARTITION BY speaker, addressee, split),
    ranked AS (PARTITION BY speaker, addressee, split ORDER BY turn_id)
