"""Functions of templates: of a string, of a token's place in its sequence, and of patterns of other programs."""
