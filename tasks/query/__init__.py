"""Read-only questions: the SQL sandbox, exported answers and summaries."""
