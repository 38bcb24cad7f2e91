-- One row is a member of Rand_A: turns of anyone but A in a split, drawn at random. Grain: set_id, position.
-- The pool of a split is ordered by speaker, so A's own turns are one block, which is skipped exactly.
WITH blocks AS (
    SELECT
        ss_set,
        speaker_no,
        split_no,
        any_value(ss_size) AS own,
        any_value(rand_size) AS size,
        (sum(any_value(ss_size)) OVER (PARTITION BY split_no ORDER BY speaker_no) - any_value(ss_size))::BIGINT
            AS block,
        (sum(any_value(ss_size)) OVER (PARTITION BY split_no))::BIGINT AS pool_size,
        drawer_hash($seed_hash, ss_set) AS drawer_hash
    FROM turn_sets
    GROUP BY ss_set, speaker_no, split_no
),

pool AS (
    SELECT s.turn_id, s.split_no, b.block + s.ss_position AS place
    FROM turn_sets AS s
    INNER JOIN blocks AS b ON s.ss_set = b.ss_set
),

draws AS (
    SELECT *, unnest(range(size)) AS position
    FROM blocks
    WHERE pool_size > own
),

placed AS (
    SELECT *, (draw_hash(drawer_hash, 5, position) % (pool_size - own)::UBIGINT)::BIGINT AS draw
    FROM draws
)

SELECT
    $corpus AS corpus,
    d.ss_set AS set_id,
    d.position,
    d.size,
    p.turn_id
FROM placed AS d
INNER JOIN pool AS p ON d.split_no = p.split_no AND p.place = d.draw + CASE WHEN d.draw >= d.block THEN d.own ELSE 0 END
