-- One row is a turn: neighbouring messages of one speaker, joined by a blank. Grain: turn_id.
-- Texts stay out of the windows: sorting them would be most of the work.
WITH messages AS (
    SELECT * FROM utterances WHERE corpus = $corpus
),

conversation_sizes AS (
    SELECT conversation_no, max(turn) + 1 AS turns
    FROM messages
    GROUP BY conversation_no
),

conversation_starts AS (
    SELECT conversation_no, (sum(turns) OVER (ORDER BY conversation_no))::BIGINT - turns AS first_turn_id
    FROM conversation_sizes
),

openings AS (
    SELECT
        conversation_no,
        turn,
        any_value(conversation_id) AS conversation_id,
        any_value(speaker) AS speaker,
        arg_min(addressee, position) AS addressee,
        count(*) AS messages,
        min(time) AS started
    FROM messages
    GROUP BY conversation_no, turn
),

addressed AS (
    SELECT
        * EXCLUDE (addressee),
        -- Neighbouring turns have different speakers, so the turn before is the latest other speaker's. Nobody spoke
        -- before an opening turn: it is addressed to who answers it.
        coalesce(addressee, lag(speaker) OVER conversation, lead(speaker) OVER conversation) AS addressee
    FROM openings
    WINDOW conversation AS (PARTITION BY conversation_no ORDER BY turn)
),

texts AS (
    SELECT m.conversation_no, m.turn, m.text
    FROM messages AS m
    SEMI JOIN openings AS o ON m.conversation_no = o.conversation_no AND m.turn = o.turn AND o.messages = 1
    UNION ALL
    SELECT m.conversation_no, m.turn, string_agg(m.text, ' ' ORDER BY m.position) AS text
    FROM messages AS m
    SEMI JOIN openings AS o ON m.conversation_no = o.conversation_no AND m.turn = o.turn AND o.messages > 1
    GROUP BY m.conversation_no, m.turn
)

SELECT
    $corpus AS corpus,
    s.first_turn_id + a.turn AS turn_id,
    a.conversation_id,
    a.turn,
    a.speaker,
    a.addressee,
    t.text,
    md5_number_lower(lower(trim(t.text))) AS text_hash,
    a.messages,
    a.started,
    -- md5, since DuckDB's own hash may change between versions and a split must stay.
    CASE md5_number_lower(a.conversation_id) % 10 WHEN 8 THEN 'valid' WHEN 9 THEN 'test' ELSE 'train' END AS split
FROM addressed AS a
INNER JOIN texts AS t ON a.conversation_no = t.conversation_no AND a.turn = t.turn
INNER JOIN conversation_starts AS s ON a.conversation_no = s.conversation_no
