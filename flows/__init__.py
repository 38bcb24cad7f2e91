"""Prefect flows, which run the stages in order, and the command line that starts them."""
