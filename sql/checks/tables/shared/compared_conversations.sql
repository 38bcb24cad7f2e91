-- One row is a conversation, as its turns tell. Grain: corpus, conversation_id.
SELECT
    corpus,
    conversation_id,
    count(*) AS turns,
    sum(messages) AS messages,
    -- Later turns are in several splits.
    min(split) FILTER (WHERE turn < 1_000) AS first_split,
    max(split) FILTER (WHERE turn < 1_000) AS last_split,
    min(turn) AS first_turn,
    max(turn) AS last_turn,
    min(turn_id - turn) AS lowest_start,
    max(turn_id - turn) AS highest_start
FROM turns
GROUP BY corpus, conversation_id
