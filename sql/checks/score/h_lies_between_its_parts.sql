-- table: scores
-- h mixes f and g in unit range, so it lies between them; SSREM's is their mean (Bak and Oh 2020, section 5.1).
SELECT *
FROM scores
WHERE
    h < least(f_unit, g_unit) - 1e-9
    OR h > greatest(f_unit, g_unit) + 1e-9
    OR (evaluator IN ('ssrem', 'rsrem') AND abs(h - (f_unit + g_unit) / 2) > 1e-9)
    OR (h IS NULL) <> (f_unit IS NULL OR g_unit IS NULL)
