"""The stages of the pipeline, one package each: they read the published snapshot and publish all outputs or none."""
