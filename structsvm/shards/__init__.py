"""Training sets larger than memory: encoded once, stored in files that are mapped, visited shard by shard."""
