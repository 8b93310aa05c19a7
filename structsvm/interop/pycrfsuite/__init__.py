"""python-crfsuite's module over this package's chains: ``sys.modules["pycrfsuite"] = structsvm.interop.pycrfsuite``.

Names, arguments and files are those of python-crfsuite. `Tagger` opens CRFsuite's files, `Trainer` writes them.
"""

import os

from structsvm.interop.pycrfsuite.items import ItemSequence
from structsvm.interop.pycrfsuite.tagger import ParsedDump, Tagger
from structsvm.interop.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "ParsedDump", "Tagger", "Trainer"]

CRFSUITE_VERSION = "0.12.2"  # whose files these are

# An editable install's path, of a kind of its own, finds submodules by this package's full name only.
__path__ = [os.path.dirname(__file__)]
