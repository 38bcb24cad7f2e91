-- One row is how many replies are to messages that have not landed, how many replies there are, and the least id of
-- such a message. Grain: the corpus.
SELECT
    count_if(reply_absent) AS absent,
    count_if(reply_absent OR reply_to IS NOT NULL) AS replies,
    min(reply_to) FILTER (WHERE reply_absent) AS example
FROM utterances
