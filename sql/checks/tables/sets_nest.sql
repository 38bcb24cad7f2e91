-- table: sc
-- SC_A lies within SS_A wherever ids name people (Bak and Oh 2020, Figure 1).
SELECT sc.turn_id
FROM sc
ANTI JOIN ss ON sc.turn_id = ss.turn_id
WHERE (SELECT count(*) FROM ss AS any_ss) > 0
