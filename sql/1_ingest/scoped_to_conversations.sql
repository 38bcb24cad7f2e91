-- One row is a record of the dump with CONVERSATION/ID as its id: ids start anew in each conversation. Grain: row_no.
SELECT
    * REPLACE (
        CASE
            WHEN reason = 'no_conversation' THEN utterance_id ELSE conversation_id || '/' || utterance_id
        END AS utterance_id,
        CASE WHEN reason = 'no_conversation' THEN reply_to ELSE conversation_id || '/' || reply_to END AS reply_to
    )
FROM without_conversations
