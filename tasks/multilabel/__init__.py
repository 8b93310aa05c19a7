"""Sets of labels per row, with interactions between pairs of labels."""
