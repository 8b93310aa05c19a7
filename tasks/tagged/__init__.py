"""Parsers whose sentences come without tags: `TaggedParser`."""
