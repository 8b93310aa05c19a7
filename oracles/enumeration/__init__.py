"""The outputs of a structure in the order of their scores, each computed on demand."""
