"""What hybrid trees need beside their charts: what a sentence may be about, and the search for derivations."""
