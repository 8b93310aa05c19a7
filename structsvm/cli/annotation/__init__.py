"""Commands that serve pages and programs on this machine: annotate, serve."""
