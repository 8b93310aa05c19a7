"""Lexicons and searches of hybrid trees: the leaves that a sentence may be about, and the derivations of its charts."""
