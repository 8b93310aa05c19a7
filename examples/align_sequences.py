"""
How much do two letters differ?
===============================

Alignment costs from alignments and from decoys.

On simulated sequences.

Shows the certificate, an alignment beside its reference, the costs, and how often homologues are told from decoys.

Run it: python examples/align_sequences.py
"""

from structsvm.datasets import make_alignment
from structsvm.metrics import alignment_scores
from structsvm.plotting import SubstitutionDisplay
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.model import log_odds_matrix

SIMULATION = {"divergence": 0.8, "n_decoys": 10}


def main():
    train = make_alignment(40, random_state=0, **SIMULATION)
    test = make_alignment(100, random_state=1, **SIMULATION)

    counted = SequenceAligner.from_costs(log_odds_matrix(train.y), -1.0, -0.5, mode="local")
    aligner = SequenceAligner(C=1.0, mode="local", tol=0.05, random_state=0).fit(train.X, train.y)
    print(aligner.result_.certificate())
    for name, model in (("counted", counted), ("learnt", aligner)):
        scores = alignment_scores(test.y, model.predict(test.X))
        print(f"{name:8s} Q {scores.q:.3f}, F1 of aligned pairs {scores.pair_f1:.3f}")
    print("a reference, and what is predicted:")
    print("\n".join(["  " + row for row in (*test.y[0], *aligner.predict(test.X[:1])[0])]))

    chooser = SequenceAligner(C=1.0, mode="local", tol=0.05, random_state=0)
    chooser.fit(train.X, train.y, decoys=train.decoys)
    for name, model in (("counts", counted), ("alignments", aligner), ("decoys", chooser)):
        print(f"costs from {name:10s}: homologue chosen in {model.score(test.X, test.y, decoys=test.decoys):.0%}")
    print(f"a gap scores {chooser.gap_open_:.3f}, and {chooser.gap_extend_:.3f} for each further letter")
    print(chooser.substitution_matrix_.to_ncbi(digits=2))
    SubstitutionDisplay.from_estimator(aligner)


if __name__ == "__main__":
    main()
