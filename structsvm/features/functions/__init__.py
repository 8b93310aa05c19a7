"""Functions of templates: of a string, and of a token's place in its sequence."""
