"""Files: written whole or not at all, JSON that is read strictly, rows of weights in few bytes."""
