-- One row is how many messages are older than an earlier one of their conversation, and how many have a time and an
-- earlier message; of those that name no message that they reply to, as the others stand where their chain of replies
-- puts them. Grain: the corpus.
SELECT
    count_if(time_backwards AND reply_to IS NULL) AS backwards,
    count_if(time IS NOT NULL AND position > 0 AND reply_to IS NULL) AS timed
FROM utterances
