"""Labels learnt from sets of candidates: `AmbiguousClassifier`."""
