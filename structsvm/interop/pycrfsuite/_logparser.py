"""python-crfsuite's place of the record of a training, by which pickles name it."""

from structsvm.interop.crfsuite_log import LabelScore, TrainLogParser

__all__ = ["LabelScore", "TrainLogParser"]
