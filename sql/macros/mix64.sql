-- The mixing function of SplitMix64 (Steele, Lea and Flood 2014) for an unsigned 64-bit number, in integer arithmetic:
-- a draw is the same under every version of DuckDB and number of threads, and costs a thirtieth of an md5.
CREATE OR REPLACE TEMPORARY MACRO mix64(Z) AS
mix64_last(mix64_middle(mix64_first(xor(z, 11400714819323198485::UBIGINT))))
