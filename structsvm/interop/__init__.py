"""Other programs' model files: read, tagged with as those programs do, and written."""

from structsvm.interop.chain_model import ChainModel, ModelFileError
from structsvm.interop.crfpp import read_crfpp, write_crfpp
from structsvm.interop.wapiti import read_wapiti, write_wapiti

__all__ = ["ChainModel", "ModelFileError", "read_crfpp", "read_wapiti", "write_crfpp", "write_wapiti"]
