-- One row is one landed message. Grain: utterance_id.
WITH answered AS (
    SELECT replies.row_no, parent.speaker
    FROM replies
    INNER JOIN raw AS parent ON replies.parent_no = parent.row_no
    INNER JOIN raw AS child ON replies.row_no = child.row_no
    WHERE child.addressee IS NULL
),

-- A reply to a forgotten message loses its reference.
to_forgotten AS (
    SELECT replies.row_no
    FROM replies
    SEMI JOIN (SELECT * FROM raw WHERE problem = 'forgotten') AS parent ON replies.parent_no = parent.row_no
),

named AS (
    SELECT
        raw.* EXCLUDE (addressee, reply_to, is_person),
        coalesce(raw.is_person, TRUE) AS is_person,
        CASE WHEN to_forgotten.row_no IS NULL THEN nullif(raw.reply_to, raw.utterance_id) END AS reply_to,
        p.conversation_no,
        p.position,
        p.turn,
        p.answers,
        p.reply_absent,
        p.time_backwards,
        nullif(coalesce(raw.addressee, answered.speaker), raw.speaker) AS addressee,
        CASE WHEN raw.addressee IS NULL THEN 'reply' ELSE 'stated' END AS known_from
    FROM raw
    INNER JOIN places AS p ON raw.row_no = p.row_no
    LEFT JOIN answered ON raw.row_no = answered.row_no
    LEFT JOIN to_forgotten ON raw.row_no = to_forgotten.row_no
)

SELECT
    $corpus AS corpus,
    coalesce(utterance_id, conversation_id || '#' || position) AS utterance_id,
    conversation_id,
    conversation_no,
    position,
    turn,
    answers,
    CASE WHEN $speaker_scope = 'person' THEN speaker ELSE conversation_id || '/' || speaker END AS speaker,
    CASE WHEN $speaker_scope = 'person' THEN addressee ELSE conversation_id || '/' || addressee END AS addressee,
    CASE WHEN addressee IS NOT NULL THEN known_from END AS addressee_from,
    is_person,
    reply_to,
    reply_absent,
    text,
    time,
    time_backwards,
    metadata
FROM named
