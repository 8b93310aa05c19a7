"""Models of label sequences for programs without Python: the runtime's file, and plain JSON."""
