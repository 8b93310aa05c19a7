"""Alignments of two strings: `SequenceAligner`."""
