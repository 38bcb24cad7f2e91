-- addressees: of the turns that have one, the shares in which it is stated, the author of the message replied to, or guessed as the previous speaker
SELECT
    corpus,
    count(*) FILTER (WHERE addressee_from = 'stated') / count(*) AS stated,
    count(*) FILTER (WHERE addressee_from = 'reply') / count(*) AS reply,
    count(*) FILTER (WHERE addressee_from = 'previous_speaker') / count(*) AS previous_speaker,
    count(*) AS turns
FROM turns WHERE addressee IS NOT NULL
GROUP BY corpus ORDER BY corpus
