"""Human scores: draw a batch of responses, show it to raters without the systems' names, and read their scores."""
