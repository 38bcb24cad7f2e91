-- table: utterances
-- A reply refers to a message of its conversation, unless it is marked as a reply to an absent message.
-- An ingest lands one corpus, so ids are compared without their corpus.
-- Most replies are to the message of the row before, whatever the order of rows; only the others are looked up.
WITH near AS (
    SELECT
        *,
        lag(utterance_id) OVER () AS id_before,
        lag(conversation_no) OVER () AS conversation_before
    FROM utterances
),

far AS (
    SELECT *
    FROM near
    WHERE
        reply_to IS NOT NULL
        AND NOT reply_absent
        AND (reply_to IS DISTINCT FROM id_before OR conversation_no <> conversation_before)
)

SELECT child.corpus, child.utterance_id, child.reply_to
FROM far AS child
ANTI JOIN utterances AS parent
    ON child.reply_to = parent.utterance_id AND child.conversation_no = parent.conversation_no
