-- table: utterances
-- A turn answers an earlier turn of its conversation, so that chains of replies end.
SELECT *
FROM utterances
WHERE answers >= turn OR (turn = 0 AND answers IS NOT NULL)
