-- One row is a speaker who is no person, as the dump writes them, with the number of messages. Grain: speaker.
SELECT
    CASE WHEN $speaker_scope = 'person' THEN speaker ELSE substr(speaker, length(conversation_id) + 2) END AS name,
    count(*) AS messages
FROM utterances
WHERE NOT is_person
GROUP BY name
ORDER BY messages DESC, name ASC
