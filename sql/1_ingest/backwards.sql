-- One row: messages older than an earlier one of their conversation, and all that could be, for they have a time.
SELECT
    count_if(time_backwards) AS backwards,
    count_if(time IS NOT NULL AND position > 0) AS timed
FROM utterances
