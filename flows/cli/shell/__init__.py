"""The interactive prompt of `ssrem sql`."""
