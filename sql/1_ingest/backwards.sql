-- One row is the corpus, with two numbers of messages: those older than an earlier one of their conversation, and those
-- that have a time and are not the first of their conversation. Messages that name a message that they reply to do not
-- count: they stand where their chain of replies puts them. Grain: the corpus.
SELECT
    count_if(time_backwards AND reply_to IS NULL) AS backwards,
    count_if(time IS NOT NULL AND position > 0 AND reply_to IS NULL) AS timed
FROM utterances
