"""Exported models in the programs that predict with them."""
