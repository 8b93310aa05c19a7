"""Linear classifiers trained online: `SGDQNClassifier` and `TrackingClassifier`."""
