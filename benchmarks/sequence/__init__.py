"""Label sequences: one part per file, with their data and the other programs."""
