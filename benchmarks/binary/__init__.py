"""Online machines of two classes: one part per file, with their data and what they are compared with."""
