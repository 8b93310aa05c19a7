"""Parse trees: `GrammarParser`."""
