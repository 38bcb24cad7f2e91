"""What every stage shares: opening, gating, publishing, the ledger, and progress."""
