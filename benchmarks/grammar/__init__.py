"""Grammar learning: one part per file, with its data and the floor of parsing speed."""
