-- One row is a turn and where it stands in its speaker's sets; people are numbered, as numbers sort faster than names.
-- Grain: turn_id. Scratch: sc, sp, ss and the draws are read from it.
WITH people AS (
    SELECT speaker AS person, row_number() OVER (ORDER BY speaker) AS person_no
    FROM (
        SELECT speaker FROM turns
        UNION
        SELECT addressee FROM turns WHERE addressee IS NOT NULL
    )
),

numbered AS (
    SELECT
        t.turn_id,
        t.turn_id - t.turn AS conversation,
        t.text_hash,
        a.person_no AS speaker_no,
        b.person_no AS addressee_no,
        CASE t.split WHEN 'train' THEN 0 WHEN 'valid' THEN 1 ELSE 2 END AS split_no
    FROM turns AS t
    INNER JOIN people AS a ON t.speaker = a.person
    LEFT JOIN people AS b ON t.addressee = b.person
)

SELECT
    turn_id,
    conversation,
    text_hash,
    speaker_no,
    split_no,
    first_value(turn_id) OVER sc AS sc_set,
    row_number() OVER sc - 1 AS sc_position,
    count(*) OVER whole_sc AS sc_size,
    -- A's turns among the context's: in A's sets they and the response are neighbours.
    count(*) OVER context AS own_context,
    CASE WHEN addressee_no IS NOT NULL THEN first_value(turn_id) OVER sp END AS sp_set,
    row_number() OVER sp - 1 AS sp_position,
    count(*) OVER whole_sp AS sp_size,
    count(*) OVER addressed_context AS own_addressed_context,
    first_value(turn_id) OVER ss AS ss_set,
    row_number() OVER ss - 1 AS ss_position,
    count(*) OVER whole_ss AS ss_size
FROM numbered
WINDOW
    sc AS (PARTITION BY conversation, speaker_no ORDER BY turn_id),
    whole_sc AS (
        PARTITION BY conversation, speaker_no ORDER BY turn_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ),
    context AS (
        PARTITION BY conversation, speaker_no ORDER BY turn_id RANGE BETWEEN $context_turns PRECEDING AND 1 PRECEDING
    ),
    sp AS (PARTITION BY speaker_no, addressee_no, split_no ORDER BY turn_id),
    whole_sp AS (
        PARTITION BY speaker_no, addressee_no, split_no ORDER BY turn_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ),
    addressed_context AS (
        PARTITION BY conversation, speaker_no, addressee_no ORDER BY turn_id
        RANGE BETWEEN $context_turns PRECEDING AND 1 PRECEDING
    ),
    ss AS (PARTITION BY speaker_no, split_no ORDER BY turn_id),
    whole_ss AS (
        PARTITION BY speaker_no, split_no ORDER BY turn_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
