"""What every stage shares: opening, gating, publishing, the ledger, progress and shards."""
