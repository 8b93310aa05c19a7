"""Tables of other libraries as columns of tokens (data frames, Arrow, Hugging Face), CoNLL-U, and CRFsuite's text."""
