-- One row is the true turn of a response. Grain: response_id.
SELECT corpus, response_id, 'GT' AS kind, 0 AS k, response_id AS turn_id
FROM responses
