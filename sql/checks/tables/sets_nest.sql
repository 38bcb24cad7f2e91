-- table: sc
-- SC_A and SP_A lie within SS_A wherever ids name people (Bak and Oh 2020, Figure 1).
SELECT small.turn_id
FROM (
    SELECT turn_id FROM sc
    UNION ALL
    SELECT turn_id FROM sp
) AS small
ANTI JOIN ss ON small.turn_id = ss.turn_id
WHERE (SELECT count(*) FROM ss AS any_ss) > 0
