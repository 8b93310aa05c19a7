"""Simulated worlds, and sentences about them: rooms and actors of a house, children at play, concepts, a map."""
