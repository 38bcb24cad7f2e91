-- Scrambles an unsigned 64-bit number as SplitMix64 does (Steele, Lea and Flood 2014), in integer arithmetic alone: a
-- draw is the same under any version of DuckDB and any number of threads, and costs a thirtieth of an md5.
CREATE OR REPLACE TEMPORARY MACRO mix64(Z) AS
mix64_last(mix64_middle(mix64_first(xor(z, 11400714819323198485::UBIGINT))))
