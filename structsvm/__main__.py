"""``python -m structsvm``: the command line."""

from structsvm.cli import main

main(prog_name="structsvm")
