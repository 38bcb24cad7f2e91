"""Prefect flows: when the stages of ssrem.tasks run, with retries, names, artifacts, events and notifications."""
