-- table: scores
-- h is the arithmetic mean of f and g in unit range (Bak and Oh 2020, section 5.1).
SELECT *
FROM scores
WHERE abs(h - (f_unit + g_unit) / 2) > 1e-9 OR (h IS NULL) <> (g IS NULL)
