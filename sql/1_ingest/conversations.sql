-- One row is a conversation with at least one landed message. Grain: conversation_id.
WITH described AS (
    SELECT conversation_id, arg_min(metadata, coalesce(row_no, 0)) AS metadata
    FROM aside
    WHERE record = 'conversation' AND problem IS NULL
    GROUP BY conversation_id
),

said AS (
    SELECT
        conversation_no,
        any_value(conversation_id) AS conversation_id,
        min(time) AS started,
        count(*) AS messages
    FROM utterances
    GROUP BY conversation_no
),

present AS (
    SELECT conversation_no, count(DISTINCT speaker) AS participants
    FROM spoken
    GROUP BY conversation_no
)

SELECT
    $corpus AS corpus,
    s.conversation_id,
    s.conversation_no,
    s.started,
    s.messages,
    p.participants,
    cast(json_extract(d.metadata, '$.ratings') AS VARCHAR) AS ratings,
    d.metadata
FROM said AS s
INNER JOIN present AS p ON s.conversation_no = p.conversation_no
LEFT JOIN described AS d ON s.conversation_id = d.conversation_id
