-- how each turn's addressee is known, in shares; previous_speaker is a guess
SELECT
    corpus,
    count(*) FILTER (WHERE addressee_from = 'stated') / count(*) AS stated,
    count(*) FILTER (WHERE addressee_from = 'reply') / count(*) AS reply,
    count(*) FILTER (WHERE addressee_from = 'previous_speaker') / count(*) AS previous_speaker,
    count(*) AS turns
FROM turns WHERE addressee IS NOT NULL
GROUP BY corpus ORDER BY corpus
