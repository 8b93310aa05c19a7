"""The dual with explicit weights: the state, the schedules of steps on it, and the oracle's rounds."""
