-- table: sc
-- The size of a set is the number of its members.
SELECT kind, set_id, min(size) AS size, count(*) AS members
FROM (
    SELECT 'SC' AS kind, set_id, size FROM sc
    UNION ALL
    SELECT 'SP' AS kind, set_id, size FROM sp
    UNION ALL
    SELECT 'SS' AS kind, set_id, size FROM ss
    UNION ALL
    SELECT 'Rand' AS kind, set_id, size FROM rand
) AS m
GROUP BY kind, set_id
HAVING min(size) <> count(*) OR max(size) <> count(*)
