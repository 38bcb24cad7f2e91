"""Running flows under Prefect: settings, artifacts, the failure hook and task runners."""
