-- table: turns
-- The turns of a conversation have consecutive ids, in the order of their ranks from 0.
SELECT corpus, conversation_id
FROM compared_conversations
WHERE lowest_start <> highest_start OR first_turn <> 0 OR last_turn <> turns - 1
