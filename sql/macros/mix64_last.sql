-- Last step of mix64.
CREATE OR REPLACE TEMPORARY MACRO mix64_last(Z) AS xor(z, z >> 31)
