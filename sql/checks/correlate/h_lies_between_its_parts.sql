-- table: scores
-- h of SSREM, its relatives and RUBER combines f and g, scaled to [0, 1], and lies between them; that of SSREM and its
-- relatives is their mean (Bak and Oh 2020, section 5.1). ADEM's h has another scale, and a plug-in's may have any.
SELECT *
FROM scores
WHERE
    evaluator IN ('ssrem', 'ssrem-minilm', 'ssrem-base', 'ssrem-paper', 'rsrem', 'ruber')
    AND (
        h < least(f_unit, g_unit) - 1e-9
        OR h > greatest(f_unit, g_unit) + 1e-9
        OR (evaluator <> 'ruber' AND abs(h - (f_unit + g_unit) / 2) > 1e-9)
        OR (h IS NULL) <> (f_unit IS NULL OR g_unit IS NULL)
    )
