-- One row is a conversation with a remaining message. Grain: conversation_id.
WITH remaining AS (
    SELECT
        conversation_no,
        any_value(conversation_id) AS conversation_id,
        min(time) AS started,
        count(*) AS messages,
        count(DISTINCT speaker) AS participants
    FROM kept_messages
    GROUP BY conversation_no
)

SELECT
    c.corpus,
    c.conversation_id,
    s.conversation_no,
    s.started,
    s.messages,
    s.participants,
    c.ratings,
    c.metadata
FROM remaining AS s
INNER JOIN (SELECT * FROM conversations WHERE corpus = $corpus) AS c ON s.conversation_id = c.conversation_id
