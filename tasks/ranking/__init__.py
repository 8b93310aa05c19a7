"""Rankings, and classification by losses of whole samples: models, `Ranker`, `MultivariateClassifier`."""
