"""Files: written whole or not at all, and JSON that is read strictly."""
