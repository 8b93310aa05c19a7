"""Options and parts, clocks and commands, tables and kept results of all benchmarks."""
