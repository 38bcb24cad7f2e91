-- table: vector_norms
-- A vector with NaN or infinity would make every score that depends on it invalid.
SELECT *
FROM vector_norms
WHERE NOT isfinite(norm)
