"""When: Prefect flows over the stages, and the command line."""
