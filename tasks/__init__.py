"""Steps: a stage a file, each reading the published snapshot and publishing whole or not at all."""
