"""
How few labels are enough, if I choose them?
============================================

Active learning: labels asked for.

LaSVM asks for the labels of a pool that it is in doubt about.

Prints the accuracy after every hundred answers, beside that of as many labels at random.

Run it: python examples/ask_a_pool.py
"""

import matplotlib.pyplot as plt

from structsvm.datasets import make_waveform
from structsvm.tasks import LaSVMClassifier

X, y = make_waveform(4000, random_state=0)
X_test, y_test = make_waveform(4000, random_state=1)


def answer(numbers):
    """Whoever knows the labels."""
    return y[numbers]


models = {
    selection: LaSVMClassifier(C=1.0, gamma=0.05, selection=selection, random_state=0)
    for selection in ("active", "random")
}
for model in models.values():
    model.query(X, classes=[0, 1])
curves = {name: [] for name in models}
print("labels  " + "  ".join(f"{name:>8}" for name in models))
for n_labels in range(1, 401):
    for model in models.values():
        numbers = model.query()
        model.teach(numbers, answer(numbers))
    if n_labels % 20 == 0:
        for name, model in models.items():
            curves[name].append(model.score(X_test, y_test))
    if n_labels % 100 == 0:
        print(f"{n_labels:6}  " + "  ".join(f"{model.score(X_test, y_test):8.3f}" for model in models.values()))
for name, model in models.items():
    model.finish()
    accuracy, n_vectors = model.score(X_test, y_test), model.n_support_.sum()
    print(f"{name}, after the finishing step: {accuracy:.3f}, {n_vectors} support vectors")

_, ax = plt.subplots(layout="constrained")
for name, scores in curves.items():
    ax.plot(range(20, 401, 20), scores, label=name)
ax.set(xlabel="labels asked for", ylabel="accuracy")
ax.legend()
