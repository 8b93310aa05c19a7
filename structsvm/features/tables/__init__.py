"""Tables of other libraries as columns of tokens: data frames, Arrow tables, Hugging Face data sets, CoNLL-U."""
