"""The table of the kinds of files that the project reads."""

import model_files
import shard_files
import text_files
from runner import FileKind

KINDS = {
    kind.name: kind
    for kind in (
        FileKind("model", model_files.seeds, model_files.mutate, model_files.read, ()),
        FileKind("resume", model_files.seeds, model_files.mutate_state, model_files.resume, ()),
        FileKind("checkpoint", model_files.checkpoints, model_files.mutate, model_files.read_checkpoint, ()),
        FileKind("tables", shard_files.tables, shard_files.mutate_table, shard_files.read_table, (ValueError,)),
        FileKind("shards", shard_files.folders, shard_files.mutate_folder, shard_files.read_folder, ()),
        *(
            FileKind(name, seeds.copy, text_files.mutate, text_files.reader(use), (ValueError,))
            for name, (seeds, use) in text_files.TEXTS.items()
        ),
    )
}
