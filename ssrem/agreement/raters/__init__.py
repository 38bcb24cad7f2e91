"""Agreement among raters: coefficients, filters and the noise ceiling."""
