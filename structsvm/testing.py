"""Checks for oracles that users write."""
