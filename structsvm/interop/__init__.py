"""Other programs' model files: read, tagged with as those programs do, and written."""

from structsvm.interop.chain_model import ChainModel, ModelFileError
from structsvm.interop.crfpp import read_crfpp, write_crfpp
from structsvm.interop.crfsuite import read_crfsuite, write_crfsuite
from structsvm.interop.wapiti import read_wapiti, write_wapiti

__all__ = [
    "ChainModel",
    "ModelFileError",
    "read_crfpp",
    "read_crfsuite",
    "read_wapiti",
    "write_crfpp",
    "write_crfsuite",
    "write_wapiti",
]
