-- table: sc
-- SC_A and SP_A lie within SS_A wherever ids name people (Bak and Oh 2020, Figure 1).
SELECT small.turn_id
FROM (
    SELECT corpus, turn_id FROM sc
    UNION ALL
    SELECT corpus, turn_id FROM sp
) AS small
INNER JOIN corpora AS c ON small.corpus = c.corpus
ANTI JOIN ss ON small.turn_id = ss.turn_id
WHERE c.speaker_scope = 'person'
