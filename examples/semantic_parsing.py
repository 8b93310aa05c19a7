"""
Can meanings be learnt if nobody says exactly what they are?
============================================================

Meanings learnt from bags of candidates.

A semantic parser learns from sentences and bags of candidate meanings, on a simulated house.

Shows how the alignment error falls while sentences stream in, what words mean, and a model file.

Run it: python examples/semantic_parsing.py
"""

import tempfile
from pathlib import Path

import structsvm
from structsvm.datasets import make_ambig_house
from structsvm.metrics import alignment_error, meaning_scores
from structsvm.tasks import SemanticParser


def main():
    house = make_ambig_house(2000, level=3, random_state=0)
    test = make_ambig_house(300, level=0, random_state=1)
    print(f"{house.sentences[1]!r} could mean:")
    for meaning in house.bags[1]:
        print(f"  {meaning}")

    curve = []
    parser = SemanticParser(method="ospas", C=0.1, random_state=0)
    for a in range(0, 2000, 400):
        parser.partial_fit(house.sentences[a : a + 400], house.bags[a : a + 400])
        symbols = [[symbol for _, symbol in pairs] for pairs in parser.predict_alignment(test.sentences)]
        error = alignment_error(test.alignment, symbols)
        scores = meaning_scores(test.meanings, parser.predict(test.sentences))
        curve.append(100 * error)
        print(f"after {a + 400} sentences: alignment error {100 * error:.1f} %, F1 of meanings {100 * scores.f1:.1f}")

    sentence = "the rabbit gives some cake to john"
    print(f"{sentence!r} means {parser.predict([sentence])[0]}")
    print(" ".join(f"{word}/{symbol}" for word, symbol in parser.predict_alignment([sentence])[0]))
    with tempfile.TemporaryDirectory() as folder:
        parser.save(Path(folder) / "house.model")
        print(structsvm.load(Path(folder) / "house.model").predict([sentence])[0])

    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(5, 3), layout="constrained")
    ax.plot(range(400, 2001, 400), curve, "o-")
    ax.set(xlabel="sentences", ylabel="words with a wrong meaning, %", ylim=(0, None))


if __name__ == "__main__":
    main()
