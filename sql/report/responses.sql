-- One row is a response that is shown as a case: $datasets and $responses name them, pairwise.
SELECT a.dataset, a.response_id, a.context, a.response, a.reference, a.system
FROM rated_responses AS a INNER JOIN (SELECT unnest($datasets) AS dataset, unnest($responses) AS response_id) AS wanted
    ON a.dataset = wanted.dataset AND a.response_id = wanted.response_id
