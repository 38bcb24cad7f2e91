-- One row is a turn of a person with its positions in their sets; people are numbers, which sort faster than names.
-- Grain: turn_id. Scratch: sc, sp, ss and the draws are computed from it.
-- A speaker that is not a person, such as a bot or all deleted accounts together, has no sets and is nobody's partner.
-- With $addressees = 'stated', an addressee who is only guessed is nobody's partner either.
WITH people AS (
    SELECT speaker AS person, (row_number() OVER (ORDER BY speaker))::INTEGER AS person_no
    FROM (
        SELECT speaker FROM turns WHERE is_person
        UNION
        SELECT addressed.addressee
        FROM (SELECT addressee FROM turns WHERE addressee IS NOT NULL) AS addressed
        ANTI JOIN (SELECT speaker FROM turns WHERE NOT is_person) AS no_people
            ON addressed.addressee = no_people.speaker
    )
),

numbered AS (
    SELECT
        t.turn_id,
        t.turn::INTEGER AS turn,
        t.answers IS NOT NULL AS is_response,
        chains.turn_id IS NOT NULL AS in_thread,
        t.turn_id - t.turn AS conversation,
        t.text_hash,
        a.person_no AS speaker_no,
        CASE WHEN $addressees = 'all' OR t.addressee_from <> 'previous_speaker' THEN b.person_no END AS addressee_no,
        (CASE t.split WHEN 'train' THEN 0 WHEN 'valid' THEN 1 ELSE 2 END)::TINYINT AS split_no
    FROM turns AS t
    INNER JOIN people AS a ON t.speaker = a.person
    LEFT JOIN people AS b ON t.addressee = b.person
    LEFT JOIN chains ON t.turn_id = chains.turn_id
    WHERE t.is_person
)

SELECT
    turn_id,
    turn,
    is_response,
    in_thread,
    text_hash,
    speaker_no,
    split_no,
    first_value(turn_id) OVER sc AS sc_set,
    (row_number() OVER sc - 1)::INTEGER AS sc_position,
    (count(*) OVER whole_sc)::INTEGER AS sc_size,
    -- Number of A's turns in the context; in A's sets they directly precede the response. 0 in threads, where turns of
    -- other chains may lie between.
    CASE WHEN in_thread THEN 0 ELSE count(*) OVER near END::INTEGER AS own_context,
    CASE WHEN addressee_no IS NOT NULL THEN first_value(turn_id) OVER sp END AS sp_set,
    (row_number() OVER sp - 1)::INTEGER AS sp_position,
    (count(*) OVER whole_sp)::INTEGER AS sp_size,
    CASE WHEN in_thread THEN 0 ELSE count(*) OVER addressed_near END::INTEGER AS own_addressed_context,
    first_value(turn_id) OVER ss AS ss_set,
    (row_number() OVER ss - 1)::INTEGER AS ss_position,
    (count(*) OVER whole_ss)::INTEGER AS ss_size,
    -- As large as SS_A, so that kinds compare at equal size, but at least eight, so that draws differ.
    greatest(count(*) OVER whole_ss, 8)::INTEGER AS rand_size
FROM numbered
WINDOW
    sc AS (PARTITION BY conversation, speaker_no, split_no ORDER BY turn_id),
    whole_sc AS (
        PARTITION BY conversation, speaker_no, split_no ORDER BY turn_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ),
    near AS (
        PARTITION BY conversation, speaker_no, split_no ORDER BY turn_id
        RANGE BETWEEN $context_turns PRECEDING AND 1 PRECEDING
    ),
    sp AS (PARTITION BY speaker_no, addressee_no, split_no ORDER BY turn_id),
    whole_sp AS (
        PARTITION BY speaker_no, addressee_no, split_no ORDER BY turn_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ),
    addressed_near AS (
        PARTITION BY conversation, speaker_no, addressee_no, split_no ORDER BY turn_id
        RANGE BETWEEN $context_turns PRECEDING AND 1 PRECEDING
    ),
    ss AS (PARTITION BY speaker_no, split_no ORDER BY turn_id),
    whole_ss AS (
        PARTITION BY speaker_no, split_no ORDER BY turn_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
