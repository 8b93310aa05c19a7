"""Labels of sequences by models that structsvm exported: the runtime in C, and nothing else.

>>> import structsvm_runtime
>>> tagger = structsvm_runtime.load("model.bin")  # doctest: +SKIP
>>> tagger.predict(["San", "Diego", "is", "warm"])  # doctest: +SKIP
['B-LOC', 'I-LOC', 'O', 'O']
"""

from structsvm_runtime.tagger import ModelError, Tagger, load

__all__ = ["ModelError", "Tagger", "load"]
