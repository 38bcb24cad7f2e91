-- table: negatives
-- A negative with the text of the true response would teach that the true one is wrong.
SELECT n.*
FROM negatives AS n
INNER JOIN turns AS t ON n.corpus = t.corpus AND n.response_id = t.turn_id
WHERE regexp_replace(lower(n.text), '\s', '', 'g') = regexp_replace(lower(t.text), '\s', '', 'g')
