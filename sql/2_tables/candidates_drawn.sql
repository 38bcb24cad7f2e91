-- One row is a negative for a response, drawn from one kind of set. Grain: response_id, k.
-- A draw depends on (seed, response, kind, k) alone: the hash, modulo what the set has left, is a position in it.
-- In A's own sets the response and A's turns of its context are neighbours by turn_id, so they are one block to skip.
WITH standing AS (
    SELECT
        turn_id,
        conversation,
        text_hash,
        ss_set AS rand_set,
        CASE $kind WHEN 'SC' THEN sc_set WHEN 'SP' THEN sp_set WHEN 'SS' THEN ss_set END AS set_id,
        CASE $kind WHEN 'SC' THEN sc_position WHEN 'SP' THEN sp_position WHEN 'SS' THEN ss_position END AS position,
        CASE $kind WHEN 'SC' THEN sc_size WHEN 'SP' THEN sp_size WHEN 'SS' THEN ss_size END AS size,
        CASE $kind WHEN 'SP' THEN own_addressed_context ELSE own_context END AS own_context
    FROM turn_sets
    WHERE $kind IN ('SC', 'Rand') OR $speaker_scope = 'person'
),

members AS (
    SELECT set_id, position, turn_id, text_hash FROM standing WHERE set_id IS NOT NULL
    UNION ALL
    SELECT r.set_id, r.position, r.turn_id, s.text_hash
    FROM (SELECT set_id, position, turn_id FROM rand WHERE $kind = 'Rand') AS r
    INNER JOIN turn_sets AS s ON r.turn_id = s.turn_id
),

rand_sizes AS (
    SELECT set_id, size FROM rand WHERE position = 0 AND $kind = 'Rand'
),

places AS (
    SELECT
        s.turn_id AS response_id,
        s.text_hash,
        coalesce(s.set_id, z.set_id) AS set_id,
        coalesce(s.size, z.size) AS size,
        coalesce(s.position - s.own_context, z.size) AS block,
        CASE WHEN s.set_id IS NULL THEN 0 ELSE 1 + s.own_context END AS blocked
    FROM standing AS s
    LEFT JOIN rand_sizes AS z ON s.rand_set = z.set_id
),

hashed AS (
    SELECT
        r.response_id,
        r.context_from,
        k.k,
        p.* EXCLUDE (response_id),
        draw_hash($seed, r.response_id, $kind_code, k.k) AS hash
    FROM responses AS r
    CROSS JOIN range($draws) AS k (k)
    LEFT JOIN places AS p ON r.response_id = p.response_id
),

placed AS (
    SELECT *, CASE WHEN size > blocked THEN (hash % (size - blocked)::UBIGINT)::BIGINT END AS draw
    FROM hashed
),

drawn AS (
    SELECT
        p.*,
        m.turn_id,
        coalesce(m.text_hash = p.text_hash OR m.turn_id BETWEEN p.context_from AND p.response_id, FALSE) AS clash
    FROM placed AS p
    LEFT JOIN members AS m
        ON p.set_id = m.set_id AND m.position = p.draw + CASE WHEN p.draw >= p.block THEN p.blocked ELSE 0 END
),

-- The few draws that hit the response's text, or in Rand its context: the set's different turns sorted by text, all
-- with that text are one block to skip, and from the hash on the first turn outside the context is taken. A context
-- has $context_turns turns at most, so one probe more finds a turn where there is one.
clashed AS (
    SELECT * FROM drawn WHERE clash
),

sorted_by_text AS (
    SELECT
        m.set_id,
        m.turn_id,
        m.text_hash,
        row_number() OVER (PARTITION BY m.set_id ORDER BY m.text_hash, m.turn_id) - 1 AS place,
        count(*) OVER (PARTITION BY m.set_id) AS turns
    FROM (SELECT DISTINCT set_id, turn_id, text_hash FROM members SEMI JOIN clashed USING (set_id)) AS m
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
        c.hash,
        coalesce(b.block, d.turns) AS block,
        coalesce(b.blocked, 0) AS blocked,
        d.turns - coalesce(b.blocked, 0) AS remaining,
        unnest(range(least(d.turns - coalesce(b.blocked, 0), $context_turns + 1))) AS probe
    FROM clashed AS c
    INNER JOIN (SELECT set_id, turns FROM sorted_by_text WHERE place = 0) AS d ON c.set_id = d.set_id
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
    response_id,
    $kind AS kind,
    k,
    turn_id
FROM drawn
WHERE NOT clash
UNION ALL
SELECT
    $corpus AS corpus,
    c.response_id,
    $kind AS kind,
    c.k,
    r.turn_id
FROM clashed AS c
LEFT JOIN redrawn AS r ON c.response_id = r.response_id AND c.k = r.k
