"""Text of files: encodings, byte-order marks, zip archives."""
