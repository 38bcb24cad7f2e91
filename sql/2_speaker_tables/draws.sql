-- One row is a draw of a negative for a response from one kind of set. Grain: response_id, k. Scratch.
-- A draw depends only on (seed, response, kind, k): their hash, modulo the number of eligible members, is a position.
-- turn_id is -1 if the drawn turn has the response's text or is in its context: `redraws` then has another turn.
-- In the sets of the responder A, the response and A's turns in its context are adjacent by turn_id, so that they are
-- skipped as one block; in threads only the response is skipped.
WITH standing AS NOT MATERIALIZED (
    SELECT
        turn_id,
        turn,
        is_response,
        in_thread,
        text_hash,
        drawer_hash($seed_hash, turn_id) AS drawer_hash,
        CASE
            WHEN $kind = 'SC' THEN sc_set
            WHEN $kind = 'Rand' THEN ss_set
            WHEN $speaker_scope = 'person' THEN CASE $kind WHEN 'SP' THEN sp_set ELSE ss_set END
        END AS set_id,
        CASE $kind WHEN 'SC' THEN sc_position WHEN 'SP' THEN sp_position ELSE ss_position END AS position,
        CASE $kind WHEN 'SC' THEN sc_size WHEN 'SP' THEN sp_size WHEN 'SS' THEN ss_size ELSE rand_size END AS size,
        CASE $kind WHEN 'SP' THEN own_addressed_context ELSE own_context END AS own_context
    FROM turn_sets
),

members AS (
    SELECT set_id, position, turn_id, text_hash FROM standing WHERE $kind <> 'Rand' AND set_id IS NOT NULL
    UNION ALL
    SELECT r.set_id, r.position, r.turn_id, s.text_hash
    FROM (SELECT set_id, position, turn_id FROM rand WHERE $kind = 'Rand') AS r
    INNER JOIN turn_sets AS s ON r.turn_id = s.turn_id
),

hashed AS (
    SELECT
        s.turn_id AS response_id,
        k.k,
        s.turn_id - least(s.turn, $context_turns) AS context_from,
        s.in_thread,
        s.text_hash,
        s.set_id,
        s.size,
        CASE $kind WHEN 'Rand' THEN s.size ELSE s.position - s.own_context END AS block,
        CASE $kind WHEN 'Rand' THEN 0 ELSE 1 + s.own_context END AS blocked,
        draw_hash(s.drawer_hash, $kind_code, k.k) AS hash
    FROM standing AS s
    CROSS JOIN range($draws) AS k (k)
    WHERE s.is_response
),

placed AS (
    SELECT *, CASE WHEN size > blocked THEN (hash % (size - blocked)::UBIGINT)::BIGINT END AS draw
    FROM hashed
)

SELECT
    p.response_id,
    $kind::ENUM('SC', 'SP', 'SS', 'Rand') AS kind,
    p.k::TINYINT AS k,
    CASE
        WHEN m.text_hash = p.text_hash OR m.turn_id = p.response_id THEN -1
        WHEN NOT p.in_thread AND m.turn_id BETWEEN p.context_from AND p.response_id THEN -1
        WHEN list_contains(chains.context, m.turn_id) THEN -1
        ELSE m.turn_id
    END AS turn_id
FROM placed AS p
LEFT JOIN members AS m
    ON p.set_id = m.set_id AND m.position = p.draw + CASE WHEN p.draw >= p.block THEN p.blocked ELSE 0 END
LEFT JOIN chains ON p.response_id = chains.turn_id
