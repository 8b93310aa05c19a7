"""Code that all tasks share: the model and its file, the estimator's contract, labels, threads."""
