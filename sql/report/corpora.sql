-- One row is a corpus with its turns and responses.
SELECT c.*, t.turns, r.responses FROM corpora AS c
LEFT JOIN (SELECT corpus, count(*) AS turns FROM turns GROUP BY corpus) AS t USING (corpus)
LEFT JOIN (SELECT corpus, count(*) AS responses FROM responses GROUP BY corpus) AS r USING (corpus)
ORDER BY c.landed_at
