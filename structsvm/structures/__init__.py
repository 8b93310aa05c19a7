"""What oracles, tasks, metrics and plots share about one structure, and the readers of its files."""
