-- One row is the corpus, with the number of replies to messages that have not landed, the number of all replies, and
-- the smallest id of a message that is replied to but has not landed. Grain: the corpus.
SELECT
    count_if(reply_absent) AS absent,
    count_if(reply_absent OR reply_to IS NOT NULL) AS replies,
    min(reply_to) FILTER (WHERE reply_absent) AS example
FROM utterances
