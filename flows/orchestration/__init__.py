"""How flows run: settings of Prefect, artifacts, the failure hook and task runners."""
