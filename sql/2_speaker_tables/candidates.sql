-- One row is a candidate for a response: its true turn or a negative. Grain: response_id, kind, k.
SELECT $corpus AS corpus, response_id, 'GT' AS kind, 0 AS k, response_id AS turn_id
FROM responses
UNION ALL
SELECT $corpus AS corpus, response_id, kind, k, turn_id
FROM draws
WHERE turn_id IS DISTINCT FROM -1
UNION ALL
SELECT $corpus AS corpus, response_id, kind, k, turn_id
FROM redraws
