"""
Does a tree of categories help when titles are few?
===================================================

Titles of products in a shop's tree of categories.

What its features and its loss are worth when there are few titles.

Run it: python examples/classify_taxonomy.py
"""

from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import make_products
from structsvm.metrics import hierarchical_scores, tree_loss
from structsvm.plotting import TaxonomyDisplay
from structsvm.tasks import TaxonomyClassifier


def main():
    hard = {"ambiguity": 0.5, "typos": 0.2, "noise": 0.05}
    X_test, y_test, taxonomy = make_products(1000, **hard, random_state=1)
    print(X_test[0], "|", y_test[0])
    print(f"{taxonomy}; the way to a leaf: {' > '.join(taxonomy.path(taxonomy.leaves[0]))}")
    for n in (40, 160):
        X, y, _ = make_products(n, **hard, random_state=0)
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
                f"{n} titles, {attributes:>9} features, {loss:>8} loss: accuracy {model.score(X_test, y_test):.3f}, "
                f"tree loss {tree_loss(y_test, predicted, taxonomy):.3f}, F1 over ancestors "
                f"{hierarchical_scores(y_test, predicted, taxonomy).f1:.3f}"
            )
    TaxonomyDisplay.from_estimator(model, X_test, y_test)
    careful = TaxonomyClassifier(taxonomy, leaf_only=False, loss="path", vectorizer=TfidfVectorizer(), random_state=0)
    predicted = careful.fit(X, y).predict(X_test)
    inner = [name for name in predicted if name not in taxonomy.leaves]
    print(f"with leaf_only=False and the path loss {len(inner)} of {len(predicted)} titles stay above the leaves")


if __name__ == "__main__":
    main()
