-- Product of two unsigned 64-bit numbers, modulo 2^64.
CREATE OR REPLACE TEMPORARY MACRO mul64(A, B) AS
((a::UHUGEINT * b::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT;

-- First step of mix64.
CREATE OR REPLACE TEMPORARY MACRO mix64_first(Z) AS mul64(xor(z, z >> 30), 13787848793156543929::UBIGINT);

-- Second step of mix64.
CREATE OR REPLACE TEMPORARY MACRO mix64_middle(Z) AS mul64(xor(z, z >> 27), 10723151780598845931::UBIGINT);

-- Last step of mix64.
CREATE OR REPLACE TEMPORARY MACRO mix64_last(Z) AS xor(z, z >> 31);

-- The mixing function of SplitMix64 (Steele, Lea and Flood 2014) for an unsigned 64-bit number, in integer arithmetic:
-- a draw is the same under every version of DuckDB and number of threads, and costs a thirtieth of an md5.
CREATE OR REPLACE TEMPORARY MACRO mix64(Z) AS
mix64_last(mix64_middle(mix64_first(xor(z, 11400714819323198485::UBIGINT))));

-- Hash of the seed, given as its mix64, and of the drawer: the id of the response, set or speaker that draws.
CREATE OR REPLACE TEMPORARY MACRO drawer_hash(SEED_HASH, DRAWER) AS mix64(xor(seed_hash::UBIGINT, drawer::UBIGINT));

-- Hash of all that a draw depends on: its drawer_hash, its kind and its number. Pass drawer_hash as a column of an
-- inner query: a macro repeats the text of an argument wherever it uses it, and mix64 within mix64 is slow to plan.
CREATE OR REPLACE TEMPORARY MACRO draw_hash(DRAWER_HASH, KIND_CODE, K) AS
mix64(xor(drawer_hash, (kind_code::UBIGINT << 48) + k::UBIGINT));
