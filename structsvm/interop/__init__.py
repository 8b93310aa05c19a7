"""Other programs' model files: read, tagged with as those programs do, and written."""

import importlib
from typing import TYPE_CHECKING

_HOMES = {
    "ChainModel": "chain_model",
    "ModelFileError": "chain_model",
    "read_crfpp": "crfpp",
    "read_crfsuite": "crfsuite",
    "read_wapiti": "wapiti",
    "write_crfpp": "crfpp",
    "write_crfsuite": "crfsuite",
    "write_wapiti": "wapiti",
}
_MODULES = ("pycrfsuite", "sklearn_crfsuite")

__all__ = [
    "ChainModel",
    "ModelFileError",
    "pycrfsuite",
    "read_crfpp",
    "read_crfsuite",
    "read_wapiti",
    "sklearn_crfsuite",
    "write_crfpp",
    "write_crfsuite",
    "write_wapiti",
]

# Imported when asked for: who only tags with one kind of file waits for no other.
if TYPE_CHECKING:
    from structsvm.interop import pycrfsuite as pycrfsuite
    from structsvm.interop import sklearn_crfsuite as sklearn_crfsuite
    from structsvm.interop.chain_model import ChainModel as ChainModel
    from structsvm.interop.chain_model import ModelFileError as ModelFileError
    from structsvm.interop.crfpp import read_crfpp as read_crfpp
    from structsvm.interop.crfpp import write_crfpp as write_crfpp
    from structsvm.interop.crfsuite import read_crfsuite as read_crfsuite
    from structsvm.interop.crfsuite import write_crfsuite as write_crfsuite
    from structsvm.interop.wapiti import read_wapiti as read_wapiti
    from structsvm.interop.wapiti import write_wapiti as write_wapiti
else:

    def __getattr__(name):
        if name in _HOMES:
            return getattr(importlib.import_module(f"structsvm.interop.{_HOMES[name]}"), name)
        if name in _MODULES:
            return importlib.import_module(f"structsvm.interop.{name}")
        raise AttributeError(f"module 'structsvm.interop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
