"""
Does a tree of categories help when documents are few?
======================================================

Documents in a taxonomy.

What its features and its loss are worth when there are few documents.

Run it: python examples/classify_taxonomy.py
"""

from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import make_taxonomy
from structsvm.metrics import hierarchical_scores, tree_loss
from structsvm.plotting import TaxonomyDisplay
from structsvm.tasks import TaxonomyClassifier


def main():
    X_test, y_test, taxonomy = make_taxonomy(1000, n_leaves=64, n_words=2000, random_state=1)
    print(f"{taxonomy}; the way to a leaf: {' > '.join(taxonomy.path(taxonomy.leaves[0]))}")
    for n in (128, 512):
        X, y, _ = make_taxonomy(n, n_leaves=64, n_words=2000, random_state=0)
        for attributes, loss in (
            ("flat", "zero_one"),
            ("flat", "tree"),
            ("ancestors", "zero_one"),
            ("ancestors", "tree"),
        ):
            model = TaxonomyClassifier(
                taxonomy, attributes=attributes, loss=loss, vectorizer=TfidfVectorizer(), random_state=0
            ).fit(X, y)
            predicted = model.predict(X_test)
            print(
                f"{n} documents, {attributes:>9} features, {loss:>8} loss: accuracy {model.score(X_test, y_test):.3f}, "
                f"tree loss {tree_loss(y_test, predicted, taxonomy):.3f}, F1 over ancestors "
                f"{hierarchical_scores(y_test, predicted, taxonomy).f1:.3f}"
            )
    TaxonomyDisplay.from_estimator(model, X_test, y_test)
    careful = TaxonomyClassifier(taxonomy, leaf_only=False, loss="path", vectorizer=TfidfVectorizer(), random_state=0)
    predicted = careful.fit(X, y).predict(X_test)
    inner = [name for name in predicted if name not in taxonomy.leaves]
    print(f"with leaf_only=False and the path loss {len(inner)} of {len(predicted)} documents stay above the leaves")


if __name__ == "__main__":
    main()
