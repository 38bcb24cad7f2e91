"""When the stages run: Prefect flows, and the command line that starts them."""
