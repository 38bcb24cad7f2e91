-- What a draw depends on, scrambled: the seed, whom the draw is for, and which draw of which kind it is.
CREATE OR REPLACE TEMPORARY MACRO draw_hash(SEED, DRAWER, KIND_CODE, K) AS
mix64(xor(mix64(xor(mix64(seed::UBIGINT), drawer::UBIGINT)), (kind_code::UBIGINT << 48) + k::UBIGINT))
