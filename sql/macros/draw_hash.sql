-- Hash of all that a draw depends on: its drawer_hash (a column of an inner query), its kind and its number.
-- (A macro repeats the text of an argument wherever it uses it: mix64 within mix64 takes DuckDB long to plan.)
CREATE OR REPLACE TEMPORARY MACRO draw_hash(DRAWER_HASH, KIND_CODE, K) AS
mix64(xor(drawer_hash, (kind_code::UBIGINT << 48) + k::UBIGINT))
