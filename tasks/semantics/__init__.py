"""Meaning representations learnt from bags: `SemanticParser`."""
