"""Human scores: a batch of responses is drawn, shown to raters who know no system's name, and read back."""
