-- One row is a negative for a response, drawn from one kind of set. Grain: response_id, k.
-- A draw depends on (seed, response, kind, k) alone: the hash, modulo what the set has left, is a position in it.
-- In A's own sets the response and A's turns of its context are neighbours by turn_id, so they are one block to skip.
WITH turn_texts AS (
    SELECT turn_id, turn_id - turn AS conversation, text_hash FROM turns
),

members AS (
    SELECT s.set_id, s.position, s.turn_id, t.text_hash
    FROM query_table($set_table) AS s
    INNER JOIN turn_texts AS t ON s.turn_id = t.turn_id
),

own_sets AS (
    SELECT
        s.turn_id AS response_id,
        s.set_id,
        s.size,
        s.position - count(*) OVER context AS block,
        1 + count(*) OVER context AS blocked
    FROM query_table($set_table) AS s
    INNER JOIN turn_texts AS t ON s.turn_id = t.turn_id
    WHERE $kind <> 'Rand'
    WINDOW context AS (
        PARTITION BY s.set_id, t.conversation
        ORDER BY s.turn_id RANGE BETWEEN $context_turns PRECEDING AND 1 PRECEDING
    )
),

others_sets AS (
    SELECT r.response_id, s.set_id, s.size, s.size AS block, 0 AS blocked
    FROM responses AS r
    INNER JOIN query_table($set_table) AS s ON r.speaker = s.speaker AND r.split = s.split AND s.position = 0
    WHERE $kind = 'Rand'
),

hashed AS (
    SELECT
        r.response_id,
        r.context_from,
        own.text_hash,
        k.k,
        p.set_id,
        p.size,
        p.block,
        p.blocked,
        md5_number_lower(concat_ws('|', $seed, r.response_id, $kind, k.k)) AS hash
    FROM responses AS r
    INNER JOIN turn_texts AS own ON r.response_id = own.turn_id
    CROSS JOIN range($draws) AS k (k)
    LEFT JOIN (
        SELECT * FROM own_sets
        UNION ALL
        SELECT * FROM others_sets
    ) AS p
        ON r.response_id = p.response_id
),

placed AS (
    SELECT
        *,
        CASE WHEN size > blocked THEN (hash % (size - blocked)::UBIGINT)::BIGINT END AS draw
    FROM hashed
),

drawn AS (
    SELECT
        p.*,
        m.turn_id,
        coalesce(m.text_hash = p.text_hash OR m.turn_id BETWEEN p.context_from AND p.response_id, false) AS clash
    FROM placed AS p
    LEFT JOIN members AS m
        ON p.set_id = m.set_id AND m.position = p.draw + CASE WHEN p.draw >= p.block THEN p.blocked ELSE 0 END
),

-- The few draws that hit the response's text, or in Rand its context: sorted by text, all members with that text are
-- one block to skip, and from the hash on the first member outside the context is taken.
clashed AS (
    SELECT * FROM drawn WHERE clash
),

sorted_by_text AS (
    SELECT
        m.set_id,
        m.turn_id,
        m.text_hash,
        row_number() OVER (PARTITION BY m.set_id ORDER BY m.text_hash, m.turn_id, m.position) - 1 AS place
    FROM members AS m
    SEMI JOIN clashed ON m.set_id = clashed.set_id
),

same_text AS (
    SELECT set_id, text_hash, min(place) AS block, count(*) AS blocked
    FROM sorted_by_text
    GROUP BY set_id, text_hash
),

probes AS (
    SELECT
        c.response_id,
        c.context_from,
        c.k,
        c.set_id,
        coalesce(b.block, c.size) AS block,
        coalesce(b.blocked, 0) AS blocked,
        c.hash,
        c.size - coalesce(b.blocked, 0) AS remaining,
        unnest(range(least(c.size - coalesce(b.blocked, 0), 64))) AS probe
    FROM clashed AS c
    LEFT JOIN same_text AS b ON c.set_id = b.set_id AND c.text_hash = b.text_hash
),

probe_places AS (
    SELECT *, ((hash % remaining::UBIGINT)::BIGINT + probe) % remaining AS draw
    FROM probes
),

redrawn AS (
    SELECT p.response_id, p.k, arg_min(s.turn_id, p.probe) AS turn_id
    FROM probe_places AS p
    INNER JOIN sorted_by_text AS s
        ON p.set_id = s.set_id AND s.place = p.draw + CASE WHEN p.draw >= p.block THEN p.blocked ELSE 0 END
    WHERE s.turn_id NOT BETWEEN p.context_from AND p.response_id
    GROUP BY p.response_id, p.k
)

SELECT
    $corpus AS corpus,
    d.response_id,
    $kind AS kind,
    d.k,
    CASE WHEN d.clash THEN r.turn_id ELSE d.turn_id END AS turn_id
FROM drawn AS d
LEFT JOIN redrawn AS r ON d.response_id = r.response_id AND d.k = r.k
