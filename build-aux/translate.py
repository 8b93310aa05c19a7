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

# Declarations of what Python calls: methods, functions, properties, slots of types.
CALLED_BY_PYTHON = re.compile(r"^static (?=[\w ]+[ *]__pyx_(?:pw|pf|tp|sq|mp|getprop|setprop)_\w+\()", re.MULTILINE)


def translate(arguments, module, source, output):
    """Return the number of errors; Cython has printed them.

    What Python calls checks arguments and calls what does the work: it is marked as cold, which the C compiler
    optimises for size, a seventh of a wheel.
    """
    # The options hold what one compilation has changed: new ones for each.
    options = CompilationOptions(output_file=output, **arguments)
    try:
        n_errors = compile_single(source, options, full_module_name=module).num_errors
    except CompileError:
        return 1
    code = Path(output)
    if not n_errors:
        code.write_text(CALLED_BY_PYTHON.sub("static __attribute__((cold)) ", code.read_text()))
    return n_errors


def main(source_dir, output_dir, directives, *modules):
    """Translate what is out of date; return whether anything failed."""
    arguments = {
        "include_path": [source_dir],
        "compiler_directives": json.loads(directives),
        "language_level": 3,
        "shared_utility_qualified_name": "structsvm._shared",
        "errors_to_stderr": True,
    }
    tree = create_dependency_tree(Context.from_options(CompilationOptions(**arguments)))
    outdated = []
    for module, path in (item.split("=") for item in modules):
        source, output = str(Path(source_dir, path)), Path(output_dir, module.rpartition(".")[2] + ".c")
        if not output.exists() or output.stat().st_mtime <= tree.newest_dependency(source)[0]:
            outdated.append((module, source, str(output)))
    if not outdated:
        return False
    with ProcessPoolExecutor(min(len(outdated), os.cpu_count() or 1)) as pool:
        return sum(pool.map(partial(translate, arguments), *zip(*outdated))) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
