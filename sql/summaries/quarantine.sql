-- quarantine
SELECT corpus, reason, count(*) AS rows FROM quarantine
GROUP BY ALL ORDER BY corpus ASC, count(*) DESC, reason ASC
