-- negatives: how many, and the share of a response's tokens that were replaced
SELECT
    n.corpus, n.generator, n.k, r.split, count(*) AS negatives,
    avg(n.replaced / n.tokens) AS tokens_replaced, count(*) FILTER (WHERE n.truncated) AS truncated
FROM negatives AS n INNER JOIN responses AS r ON n.corpus = r.corpus AND n.response_id = r.response_id
GROUP BY ALL ORDER BY n.corpus, n.generator, n.k, r.split
