-- Hash of the seed, given as its mix64, and of whom a draw is for.
CREATE OR REPLACE TEMPORARY MACRO drawer_hash(SEED_HASH, DRAWER) AS mix64(xor(seed_hash::UBIGINT, drawer::UBIGINT))
