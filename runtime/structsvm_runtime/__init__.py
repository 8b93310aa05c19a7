"""Labels and dependency trees by models that structsvm exported: the runtime in C, and nothing else.

>>> import structsvm_runtime
>>> tagger = structsvm_runtime.load("model.bin")  # doctest: +SKIP
>>> tagger.predict(["San", "Diego", "is", "warm"])  # doctest: +SKIP
['B-LOC', 'I-LOC', 'O', 'O']
"""

from structsvm_runtime.classifier import Classifier
from structsvm_runtime.native import ModelError
from structsvm_runtime.opening import load
from structsvm_runtime.parser import Parser
from structsvm_runtime.tagger import Tagger

__all__ = ["Classifier", "ModelError", "Parser", "Tagger", "load"]
