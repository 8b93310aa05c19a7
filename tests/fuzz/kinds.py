"""The table of the kinds of files that the project reads."""

from importlib.util import find_spec

import crfsuite_files
import model_files
import program_files
import shard_files
import text_files
from runner import FileKind

from structsvm.interop import read_crfpp, read_wapiti

KINDS = {
    kind.name: kind
    for kind in (
        FileKind("model", model_files.seeds, model_files.mutate, model_files.read, ()),
        FileKind("resume", model_files.seeds, model_files.mutate_state, model_files.resume, ()),
        FileKind("checkpoint", model_files.checkpoints, model_files.mutate, model_files.read_checkpoint, ()),
        FileKind("shards", shard_files.folders, shard_files.mutate, shard_files.read, ()),
        FileKind("wapiti", program_files.wapiti, text_files.mutate, program_files.reader(read_wapiti), (ValueError,)),
        FileKind("crfpp", program_files.crfpp, program_files.mutate, program_files.reader(read_crfpp), (ValueError,)),
        FileKind("crfsuite", crfsuite_files.models, crfsuite_files.mutate, crfsuite_files.read, (ValueError,)),
        *(
            FileKind(name, seeds.copy, text_files.mutate, text_files.reader(use), (ValueError,))
            for name, (seeds, use) in text_files.TEXTS.items()
        ),
    )
}

if find_spec("pyarrow") and find_spec("narwhals"):
    import table_files

    KINDS["tables"] = FileKind("tables", table_files.tables, table_files.mutate, table_files.read, (ValueError,))
