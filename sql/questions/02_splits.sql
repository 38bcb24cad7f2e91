-- How large are the splits, and do their people overlap?
-- Conversations are split, not people (after the first 1,000 turns of a conversation, each 100 turns by themselves), so
-- a person who speaks in several conversations may be in several splits. seen_in_training is the share of a split's
-- responses by people whose turns are also in the training split.
WITH trained_on AS (
    SELECT DISTINCT corpus, speaker
    FROM turns
    WHERE split = 'train'
)

SELECT
    r.corpus,
    r.split,
    count(*) AS responses,
    count(DISTINCT r.conversation_id) AS conversations,
    count(DISTINCT r.speaker) AS speakers,
    round(avg(len(r.context)), 1) AS mean_context_turns,
    round(avg(CASE WHEN t.speaker IS NULL THEN 0 ELSE 1 END), 3) AS seen_in_training
FROM responses AS r
LEFT JOIN trained_on AS t ON r.corpus = t.corpus AND r.speaker = t.speaker
GROUP BY r.corpus, r.split
ORDER BY r.corpus ASC, responses DESC
