"""Functions of templates: of a string, of a token's place in its sequence, and what patterns of other programs ask for."""
