"""Makes turns, responses, speaker sets and candidates from messages, by SQL statements, in any DuckDB database."""
