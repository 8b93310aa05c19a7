"""How compiled code runs: on which instruction set, and until when."""
