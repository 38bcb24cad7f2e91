-- One row is a speaker who is no person, by the name in the dump, with the number of messages. Grain: name.
SELECT
    CASE WHEN $speaker_scope = 'person' THEN speaker ELSE substr(speaker, length(conversation_id) + 2) END AS name,
    count(*) AS messages
FROM utterances
WHERE NOT is_person
GROUP BY name
ORDER BY messages DESC, name ASC
