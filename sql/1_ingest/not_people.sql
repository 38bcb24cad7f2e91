-- One row is a speaker of the dump that is not a person, with the number of its readable messages. Grain: speaker.
SELECT speaker, count(*) AS messages
FROM raw
WHERE record = 'message' AND reason IS NULL AND NOT is_person
GROUP BY speaker
ORDER BY messages DESC, speaker ASC
