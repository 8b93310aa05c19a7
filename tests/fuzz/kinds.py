"""The table of the kinds of files that the project reads."""

import model_files
from runner import FileKind

KINDS = {kind.name: kind for kind in (FileKind("model", model_files.seeds, model_files.mutate, model_files.read, ()),)}
