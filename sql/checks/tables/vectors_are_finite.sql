-- table: vector_norms
-- A vector with NaN or infinity would spread through every score that it takes part in.
SELECT *
FROM vector_norms
WHERE NOT isfinite(norm)
