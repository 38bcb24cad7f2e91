-- One row is a member of Rand_A: turns of anyone but A in a split, drawn at random. Grain: set_id, position.
-- As many as SS_A has, so that the kinds compare at equal size, and eight at least, so that draws differ.
-- The pool of a split is sorted by speaker: A's own turns are one block, and skipping it makes each draw exact.
WITH pool AS (
    SELECT
        turn_id,
        speaker,
        split,
        row_number() OVER (PARTITION BY split ORDER BY speaker, turn_id) - 1 AS place,
        count(*) OVER (PARTITION BY split) AS size
    FROM turns
),

speakers AS (
    SELECT
        speaker, split, min(turn_id) AS set_id, min(place) AS block, count(*) AS own, any_value(size) AS pool_size
    FROM pool
    GROUP BY speaker, split
),

draws AS (
    SELECT
        s.*,
        unnest(range(greatest(s.own, 8))) AS position
    FROM speakers AS s
    WHERE s.pool_size > s.own
),

placed AS (
    SELECT
        *,
        md5_number_lower(concat_ws('|', $seed, 'rand', set_id, position)) % (pool_size - own)::UBIGINT AS draw
    FROM draws
)

SELECT
    $corpus AS corpus,
    d.set_id,
    d.position,
    greatest(d.own, 8) AS size,
    p.turn_id,
    d.speaker,
    d.split
FROM placed AS d
INNER JOIN pool AS p ON d.split = p.split AND p.place = d.draw + CASE WHEN d.draw >= d.block THEN d.own ELSE 0 END
