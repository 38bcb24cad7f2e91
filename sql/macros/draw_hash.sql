-- Hash of all that a draw depends on: the seed, whom the draw is for, its kind and its number.
CREATE OR REPLACE TEMPORARY MACRO draw_hash(SEED, DRAWER, KIND_CODE, K) AS
mix64(xor(mix64(xor(mix64(seed::UBIGINT), drawer::UBIGINT)), (kind_code::UBIGINT << 48) + k::UBIGINT))
