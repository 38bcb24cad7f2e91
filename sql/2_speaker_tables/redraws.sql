-- One row is the replacement of a draw with the response's text or from its context. Grain: response_id, k. Scratch.
-- A second draw from the whole set suffices for nearly all of them. For the rest, the set's turns are sorted by text,
-- so that those with the response's text are one block to skip. From the position that the hash gives, the first turn
-- that is not in the context is drawn. A context has at most $context_turns turns, so one probe more than that finds a
-- turn if there is one; otherwise turn_id is null.
WITH clashed AS (
    SELECT
        c.response_id,
        c.k,
        coalesce(chains.context, range(c.response_id - least(s.turn, $context_turns), c.response_id)) AS context,
        s.text_hash,
        CASE $kind WHEN 'SC' THEN s.sc_set WHEN 'SP' THEN s.sp_set ELSE s.ss_set END AS set_id,
        CASE $kind WHEN 'SC' THEN s.sc_size WHEN 'SP' THEN s.sp_size WHEN 'SS' THEN s.ss_size ELSE s.rand_size END
            AS size,
        draw_hash(c.drawer_hash, $kind_code, c.k) AS hash
    FROM (
        SELECT response_id, k, drawer_hash($seed_hash, response_id) AS drawer_hash
        FROM draws
        WHERE kind = $kind AND turn_id = -1
    ) AS c
    INNER JOIN turn_sets AS s ON c.response_id = s.turn_id
    LEFT JOIN chains ON c.response_id = chains.turn_id
),

members AS NOT MATERIALIZED (
    SELECT set_id, position, turn_id FROM sc WHERE $kind = 'SC'
    UNION ALL
    SELECT set_id, position, turn_id FROM sp WHERE $kind = 'SP'
    UNION ALL
    SELECT set_id, position, turn_id FROM ss WHERE $kind = 'SS'
    UNION ALL
    SELECT set_id, position, turn_id FROM rand WHERE $kind = 'Rand'
),

again AS (
    SELECT
        c.*,
        s.turn_id,
        s.text_hash <> c.text_hash AND s.turn_id <> c.response_id AND NOT list_contains(c.context, s.turn_id) AS valid
    FROM clashed AS c
    INNER JOIN members AS m ON c.set_id = m.set_id AND m.position = (mix64(c.hash) % c.size::UBIGINT)::BIGINT
    INNER JOIN turn_sets AS s ON m.turn_id = s.turn_id
),

stubborn AS (
    SELECT * FROM again WHERE NOT valid
),

sorted_by_text AS (
    SELECT
        m.set_id,
        m.turn_id,
        s.text_hash,
        row_number() OVER (PARTITION BY m.set_id ORDER BY s.text_hash, m.turn_id) - 1 AS place,
        count(*) OVER (PARTITION BY m.set_id) AS turns
    FROM (SELECT DISTINCT set_id, turn_id FROM members SEMI JOIN stubborn USING (set_id)) AS m
    INNER JOIN turn_sets AS s ON m.turn_id = s.turn_id
),

same_text AS (
    SELECT set_id, text_hash, min(place) AS block, count(*) AS blocked
    FROM sorted_by_text
    GROUP BY set_id, text_hash
),

probes AS (
    SELECT
        c.response_id,
        c.context,
        c.k,
        c.set_id,
        c.hash,
        coalesce(b.block, d.turns) AS block,
        coalesce(b.blocked, 0) AS blocked,
        d.turns - coalesce(b.blocked, 0) AS remaining,
        unnest(range(least(d.turns - coalesce(b.blocked, 0), $context_turns + 1))) AS probe
    FROM stubborn AS c
    INNER JOIN (SELECT set_id, turns FROM sorted_by_text WHERE place = 0) AS d ON c.set_id = d.set_id
    LEFT JOIN same_text AS b ON c.set_id = b.set_id AND c.text_hash = b.text_hash
),

probe_places AS (
    SELECT *, ((hash % remaining::UBIGINT)::BIGINT + probe) % remaining AS draw
    FROM probes
),

found AS (
    SELECT p.response_id, p.k, arg_min(s.turn_id, p.probe) AS turn_id
    FROM probe_places AS p
    INNER JOIN sorted_by_text AS s
        ON p.set_id = s.set_id AND s.place = p.draw + CASE WHEN p.draw >= p.block THEN p.blocked ELSE 0 END
    WHERE s.turn_id <> p.response_id AND NOT list_contains(p.context, s.turn_id)
    GROUP BY p.response_id, p.k
)

SELECT response_id, $kind::ENUM('SC', 'SP', 'SS', 'Rand') AS kind, k, turn_id
FROM again
WHERE valid
UNION ALL
SELECT s.response_id, $kind::ENUM('SC', 'SP', 'SS', 'Rand') AS kind, s.k, f.turn_id
FROM stubborn AS s
LEFT JOIN found AS f ON s.response_id = f.response_id AND s.k = f.k
