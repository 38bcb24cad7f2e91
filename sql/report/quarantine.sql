-- One row is a reason in a corpus.
SELECT corpus, reason, count(*) AS rows FROM quarantine
GROUP BY ALL ORDER BY corpus ASC, count(*) DESC, reason ASC
