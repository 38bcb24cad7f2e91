"""Read-only queries: the SQL sandbox, answers as files, and summaries."""
