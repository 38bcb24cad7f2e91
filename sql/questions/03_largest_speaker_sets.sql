-- Who has the largest speaker sets?
-- The id of a set is its first turn, which is A's own, so that turn identifies A. There is one SC per conversation
-- and one SP per partner: the columns give their number and their mean size.
WITH set_sizes AS (
    SELECT 'SC' AS kind, corpus, set_id, size FROM sc WHERE position = 0
    UNION ALL
    SELECT 'SP' AS kind, corpus, set_id, size FROM sp WHERE position = 0
    UNION ALL
    SELECT 'SS' AS kind, corpus, set_id, size FROM ss WHERE position = 0
)

SELECT
    t.corpus,
    t.speaker,
    sum(s.size) FILTER (WHERE s.kind = 'SS') AS turns,
    count(*) FILTER (WHERE s.kind = 'SC') AS conversations,
    round(avg(s.size) FILTER (WHERE s.kind = 'SC'), 1) AS turns_per_conversation,
    count(*) FILTER (WHERE s.kind = 'SP') AS partners,
    round(avg(s.size) FILTER (WHERE s.kind = 'SP'), 1) AS turns_per_partner
FROM set_sizes AS s
INNER JOIN turns AS t ON s.corpus = t.corpus AND s.set_id = t.turn_id
GROUP BY t.corpus, t.speaker
ORDER BY turns DESC, t.speaker ASC
LIMIT 20
