"""Storage: the home folder, its lock, snapshots, catalog, integrity and garbage collection."""
