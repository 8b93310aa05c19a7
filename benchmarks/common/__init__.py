"""What all benchmarks share: options and parts, clocks and commands, tables and kept results."""
