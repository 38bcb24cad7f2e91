-- One row is a member of SC_A: A's turns in one conversation. Grain: set_id, position.
SELECT
    corpus,
    min(turn_id) OVER whole AS set_id,
    row_number() OVER ranked - 1 AS position,
    count(*) OVER whole AS size,
    turn_id,
    speaker,
    split
FROM turns
WINDOW
    -- turn_id - turn is the first turn of the conversation, which numbers it.
    whole AS (PARTITION BY turn_id - turn, speaker),
    ranked AS (PARTITION BY turn_id - turn, speaker ORDER BY turn_id)
