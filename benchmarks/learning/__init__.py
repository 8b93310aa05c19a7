"""The parts of `learning.py`: a module for each, and what they share."""
