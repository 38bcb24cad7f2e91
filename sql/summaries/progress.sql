-- progress
SELECT
    c.corpus, c.landed_at, EXISTS(SELECT 1 FROM candidates AS x WHERE x.corpus = c.corpus) AS tables,
    (
        SELECT ARRAY_TO_STRING(LIST_SORT(LIST(DISTINCT i.evaluator || ' v' || i.version)), ', ')
        FROM identification AS i WHERE i.corpus = c.corpus
    ) AS scored_by
FROM corpora AS c ORDER BY c.landed_at
