-- One row is a corpus, its turns and responses, and its shares of addressed turns by how the addressee is known.
SELECT c.*, t.turns, t.stated, t.reply, t.previous_speaker, r.responses FROM corpora AS c
LEFT JOIN (
    SELECT
        corpus, count(*) AS turns,
        count(*) FILTER (WHERE addressee_from = 'stated') / nullif(count(addressee), 0) AS stated,
        count(*) FILTER (WHERE addressee_from = 'reply') / nullif(count(addressee), 0) AS reply,
        count(*) FILTER (WHERE addressee_from = 'previous_speaker') / nullif(count(addressee), 0) AS previous_speaker
    FROM turns GROUP BY corpus
) AS t USING (corpus)
LEFT JOIN (SELECT corpus, count(*) AS responses FROM responses GROUP BY corpus) AS r USING (corpus)
ORDER BY c.landed_at
