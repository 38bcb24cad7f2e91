-- One row is a speaker of the dump that is no person, with its messages that are sound. Grain: speaker.
SELECT speaker, count(*) AS messages
FROM raw
WHERE record = 'message' AND reason IS NULL AND NOT is_person
GROUP BY speaker
ORDER BY messages DESC, speaker ASC
