-- One row is a turn of a speaker who is drawn to measure the similarity within sets. Grain: turn_id. Scratch.
-- $speakers speakers (null: all) are drawn. Each has a set of two turns or more of every kind of which anyone has such
-- a set; of_speakers is the number of speakers of whom that is true.
WITH speakers AS (
    SELECT
        speaker_no,
        drawer_hash($seed_hash, speaker_no) AS drawer_hash,
        bool_or(sc_size > 1) AS has_sc,
        $speaker_scope = 'person' AND bool_or(sp_set IS NOT NULL AND sp_size > 1) AS has_sp,
        $speaker_scope = 'person' AND bool_or(ss_size > 1) AS has_ss,
        bool_or(ss_set IN (SELECT rand.set_id FROM rand)) AS has_rand
    FROM turn_sets
    GROUP BY speaker_no
),

kinds AS (
    SELECT
        bool_or(has_sc) AS has_sc,
        bool_or(has_sp) AS has_sp,
        bool_or(has_ss) AS has_ss,
        bool_or(has_rand) AS has_rand
    FROM speakers
),

drawn AS (
    SELECT s.speaker_no, count(*) OVER () AS of_speakers
    FROM speakers AS s
    CROSS JOIN kinds AS k
    WHERE s.has_sc >= k.has_sc AND s.has_sp >= k.has_sp AND s.has_ss >= k.has_ss AND s.has_rand >= k.has_rand
    QUALIFY row_number() OVER (ORDER BY draw_hash(s.drawer_hash, 6, 0)) <= coalesce($speakers, of_speakers)
)

SELECT s.turn_id, s.speaker_no, d.of_speakers
FROM turn_sets AS s
INNER JOIN drawn AS d ON s.speaker_no = d.speaker_no
