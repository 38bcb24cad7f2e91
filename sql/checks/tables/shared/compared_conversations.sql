-- One row is a conversation, summarised from its turns. Grain: corpus, conversation_id.
SELECT
    corpus,
    conversation_id,
    count(*) AS turns,
    sum(messages) AS messages,
    min(turn) AS first_turn,
    max(turn) AS last_turn,
    min(turn_id - turn) AS lowest_start,
    max(turn_id - turn) AS highest_start
FROM turns
GROUP BY corpus, conversation_id
