"""How compiled code runs: from which file, on which instruction set, and until when."""
