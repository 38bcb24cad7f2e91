-- One row is a turn: consecutive messages of one speaker, joined by a space. Grain: turn_id.
WITH messages AS NOT MATERIALIZED (
    SELECT * FROM utterances WHERE corpus = $corpus
),

conversation_starts AS (
    SELECT
        conversation_no,
        count(*) > max(turn) + 1 AS has_joined_turns,
        (sum(max(turn) + 1) OVER (ORDER BY conversation_no) - max(turn) - 1)::BIGINT AS first_turn_id,
        -- md5, since DuckDB's own hash may change between versions, and splits must not.
        (md5_number_lower(any_value(conversation_id)) % 10)::INTEGER AS tenth
    FROM messages
    GROUP BY conversation_no
),

-- Only turns of several messages are aggregated, since sorting all texts would dominate the running time.
several AS (
    SELECT conversation_no, turn
    FROM messages
    WHERE conversation_no IN (SELECT s.conversation_no FROM conversation_starts AS s WHERE s.has_joined_turns)
    GROUP BY conversation_no, turn
    HAVING count(*) > 1
),

joined AS (
    SELECT
        conversation_no,
        turn,
        answers,
        conversation_id,
        speaker,
        is_person,
        addressee,
        addressee_from,
        text,
        1 AS messages,
        time AS started
    FROM messages
    ANTI JOIN several USING (conversation_no, turn)
    UNION ALL
    SELECT
        conversation_no,
        turn,
        any_value(answers) AS answers,
        any_value(conversation_id) AS conversation_id,
        any_value(speaker) AS speaker,
        bool_and(is_person) AS is_person,
        arg_min(addressee, position) AS addressee,
        arg_min(addressee_from, position) AS addressee_from,
        string_agg(text, ' ' ORDER BY position) AS text,
        count(*) AS messages,
        arg_min(time, position) AS started
    FROM messages
    SEMI JOIN several USING (conversation_no, turn)
    GROUP BY conversation_no, turn
),

speakers AS (
    SELECT DISTINCT conversation_no, turn, answers, speaker
    FROM messages
    WHERE conversation_no IN (SELECT m.conversation_no FROM messages AS m WHERE m.addressee IS NULL)
),

-- The first other speaker who answers the opening turn of a conversation.
answerers AS (
    SELECT first.conversation_no, arg_min(later.speaker, later.turn) AS speaker
    FROM speakers AS first
    INNER JOIN speakers AS later ON first.conversation_no = later.conversation_no AND later.answers = 0
    WHERE first.turn = 0 AND later.speaker <> first.speaker
    GROUP BY first.conversation_no
)

SELECT
    $corpus AS corpus,
    s.first_turn_id + j.turn AS turn_id,
    j.conversation_id,
    j.turn,
    s.first_turn_id + j.answers AS answers,
    j.speaker,
    j.is_person,
    -- The addressee of a turn that answers its own speaker is that speaker here; turns_addressed replaces it.
    coalesce(j.addressee, before.speaker, after.speaker) AS addressee,
    CASE
        WHEN j.addressee IS NOT NULL THEN j.addressee_from
        WHEN coalesce(before.speaker, after.speaker) IS NOT NULL THEN 'previous_speaker'
    END AS addressee_from,
    j.text,
    -- trim is slow, and few texts begin or end with a tab, line feed, carriage return, space or no-break space.
    md5_number_lower(
        lower(
            CASE
                WHEN ascii(j.text) IN (9, 10, 13, 32, 160) OR ascii(right(j.text, 1)) IN (9, 10, 13, 32, 160)
                    THEN trim(j.text, chr(9) || chr(10) || chr(13) || chr(32) || chr(160))
                ELSE j.text
            END
        )
    ) AS text_hash,
    j.messages,
    j.started,
    -- A channel of a chat program is one endless conversation, so after its first 1,000 turns each 100 turns are
    -- assigned to a split by themselves; conversations_stay_in_one_split and shares_above group turns in the same way.
    CASE (s.tenth + CASE WHEN j.turn < 1_000 THEN 0 ELSE j.turn // 100 END) % 10
        WHEN 8 THEN 'valid' WHEN 9 THEN 'test' ELSE 'train'
    END AS split
FROM joined AS j
INNER JOIN conversation_starts AS s ON j.conversation_no = s.conversation_no
LEFT JOIN speakers AS before
    ON j.addressee IS NULL AND j.conversation_no = before.conversation_no AND j.answers = before.turn
LEFT JOIN answerers AS after
    ON j.addressee IS NULL AND j.turn = 0 AND j.conversation_no = after.conversation_no
