"""Data structures shared by oracles, tasks, metrics and plots, and the readers of their files."""
