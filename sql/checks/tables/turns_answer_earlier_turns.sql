-- table: turns
-- A turn answers an earlier turn of its conversation, so that chains of answers stay in it, and end.
SELECT *
FROM turns
WHERE answers NOT BETWEEN turn_id - turn AND turn_id - 1
