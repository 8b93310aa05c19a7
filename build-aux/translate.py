"""Translate Cython modules to C, those that are out of date, in one process per core: one per module takes three times
the work.

    translate.py SOURCE_DIR OUTPUT_DIR DIRECTIVES MODULE=PATH ...

DIRECTIVES is JSON. PATH is relative to SOURCE_DIR; the C file of the module ``a.b.c`` is OUTPUT_DIR/c.c.
"""

import json
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from Cython.Build.Dependencies import create_dependency_tree
from Cython.Compiler.Errors import CompileError
from Cython.Compiler.Main import CompilationOptions, Context, compile_single

# Functions that Python calls: methods, functions, properties, slots of types. The first two are a wrapper, pw, which
# reads the arguments, and a body, pf, which it calls.
DECLARATION = re.compile(r"^static (?=[\w ]+[ *](__pyx_(?:pw|pf|tp|sq|mp|getprop|setprop)_\w+)\()", re.MULTILINE)
DEFINITION = re.compile(r"^static [\w ]+[ *](__pyx_p[wf]_\w+)\([^;{]*\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
LOOP = re.compile(  # under one name or, before Cython 3.3, the other
    r"(?:PyEval_SaveThread|Py_UNBLOCK_THREADS)(?:(?!PyEval_RestoreThread|Py_BLOCK_THREADS).)*?\b(?:for|while) \(",
    re.DOTALL,
)


def marked(code):
    """Generated code in which declarations of what Python calls begin with `CALLED_BY_PYTHON`, unless it does work
    itself: loops without the GIL.
    """
    bodies = dict(DEFINITION.findall(code))
    busy = {name for name, body in bodies.items() if LOOP.search(body)}
    busy |= {name for name, body in bodies.items() if any(f"{other}(" in body for other in busy)}
    return DECLARATION.sub(lambda found: found[0] + "CALLED_BY_PYTHON " * (found[1] not in busy), code)


def translate(arguments, module, source, output):
    """Return the number of errors; Cython has printed them."""
    # The options hold what one compilation has changed: new ones for each.
    options = CompilationOptions(output_file=output, **arguments)
    try:
        n_errors = compile_single(source, options, full_module_name=module).num_errors
    except CompileError:
        return 1
    code = Path(output)
    if not n_errors:
        code.write_text(marked(code.read_text()))
    return n_errors


def main(source_dir, output_dir, directives, *modules):
    """Translate what is out of date, all where the directives are others; return whether anything failed."""
    arguments = {
        "include_path": [source_dir],
        "compiler_directives": json.loads(directives),
        "language_level": 3,
        "shared_utility_qualified_name": "structsvm._shared",
        "errors_to_stderr": True,
    }
    stamp = Path(output_dir, "directives.json")
    others = not stamp.exists() or stamp.read_text() != directives
    tree = create_dependency_tree(Context.from_options(CompilationOptions(**arguments)))
    outdated = []
    for module, path in (item.split("=") for item in modules):
        source, output = str(Path(source_dir, path)), Path(output_dir, module.rpartition(".")[2] + ".c")
        if others or not output.exists() or output.stat().st_mtime <= tree.newest_dependency(source)[0]:
            outdated.append((module, source, str(output)))
    if not outdated:
        return False
    with ProcessPoolExecutor(min(len(outdated), os.cpu_count() or 1)) as pool:
        failed = sum(pool.map(partial(translate, arguments), *zip(*outdated))) > 0
    if not failed:
        stamp.write_text(directives)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
