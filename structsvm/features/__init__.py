"""Text and records made into encoded tokens."""
