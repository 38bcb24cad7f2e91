-- One row is how many messages are older than an earlier one of their conversation, and how many have a time and an
-- earlier message. Grain: the corpus.
SELECT
    count_if(time_backwards) AS backwards,
    count_if(time IS NOT NULL AND position > 0) AS timed
FROM utterances
