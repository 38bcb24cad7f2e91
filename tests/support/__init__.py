"""What several tests share: small homes, tiny models, and where the project lies."""
