"""
How do I sort products into a shop's categories?
================================================

Titles of products in a tree of categories.

How many titles are enough, how far off the errors are, how sure the way down is; and titles that stay at an inner node
where that is safer.

Run it: python examples/classify_taxonomy.py
"""

from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import make_products
from structsvm.metrics import hierarchical_scores, tree_loss
from structsvm.plotting import TaxonomyDisplay
from structsvm.tasks import TaxonomyClassifier

HARD = {"ambiguity": 0.5, "typos": 0.2, "noise": 0.05}


def main():
    X_test, y_test, taxonomy = make_products(1000, **HARD, random_state=1)
    print(f"{taxonomy}; the way to a leaf: {' > '.join(taxonomy.path(taxonomy.leaves[0]))}")
    for n in (80, 320, 1280):
        X, y, _ = make_products(n, **HARD, random_state=0)
        model = TaxonomyClassifier(taxonomy, vectorizer=TfidfVectorizer(), random_state=0).fit(X, y)
        predicted = model.predict(X_test)
        print(
            f"{n} titles: accuracy {model.score(X_test, y_test):.3f}, tree loss "
            f"{tree_loss(y_test, predicted, taxonomy):.3f}, F1 over ancestors "
            f"{hierarchical_scores(y_test, predicted, taxonomy).f1:.3f}"
        )
    for title, row in zip(X_test[:3], model.node_proba(X_test[:3]), strict=True):
        sure = dict(zip(model.taxonomy_.nodes, row, strict=True))
        way = model.predict_path([title])[0]
        print(f"{title}: {', '.join(f'{node} {sure[node]:.2f}' for node in way)}")
    TaxonomyDisplay.from_estimator(model, X_test, y_test)
    careful = TaxonomyClassifier(taxonomy, leaf_only=False, loss="path", vectorizer=TfidfVectorizer(), random_state=0)
    predicted = careful.fit(X, y).predict(X_test)
    inner = [name for name in predicted if name not in taxonomy.leaves]
    print(f"with leaf_only=False and the path loss {len(inner)} of {len(predicted)} titles stay above the leaves")


if __name__ == "__main__":
    main()
