"""The command `annotate`: a page on which one labels texts, and a model that learns from it."""

from __future__ import annotations

import os
import secrets
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from structsvm.cli.annotation import running
from structsvm.cli.output import ENCODING, FILE, NEW, NameChoice, check_stdout

TASKS, ORDERS, FORMATS = ("sequence", "taxonomy", "pairs"), ("query", "file"), ("text", "csv", "jsonl", "conll")
EXPORTS = ("jsonl", "conll", "conllu", "model")


@click.command()
@click.argument("file", type=FILE)
@click.option("--task", type=NameChoice(TASKS), default="sequence", show_default=True, help="What a text gets.")
@click.option("--labels", help="Labels, separated by commas.  [default: those of FILE; more can be added on the page]")
@click.option("--format", type=NameChoice(FORMATS), help="Format of FILE.  [default: by the end of its name, or text]")
@click.option("--column", multiple=True, help="Of a table: the column of texts; of pairs, twice.")
@click.option("--answers", type=NEW, help="File of the answers.  [default: FILE.answers.jsonl]")
@click.option("--annotator", multiple=True, help="Name of who labels; several times: an address for each.")
@click.option(
    "--order",
    type=NameChoice(ORDERS),
    default="query",
    show_default=True,
    help="Next question: what the model is least sure of, or the next text.",
)
@click.option("--host", default=running.LOOPBACK, show_default=True, help="Address to serve on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free one.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--agreement", is_flag=True, help="Print how far the annotators agree, and end.")
@click.option("--export", type=NameChoice(EXPORTS), help="Write the answers, or a model of them, to -o, and end.")
@click.option("-o", "--output", type=NEW, help="File for --export.")
@ENCODING
def annotate(file: str, labels: str | None, answers: str | None, agreement: bool, **given: Any) -> None:
    """Label the texts of FILE on a page in the browser, with a model that learns and suggests.

    Each answer is on the disk before the page says so, and the command goes on where it was stopped. The page is served
    to this machine alone, at an address with a token.
    """
    if (given["export"] is None) != (given["output"] is None):
        raise click.UsageError("--export and -o go together: the kind of the file, and its name")
    path = answers or f"{file}.answers.jsonl"
    if given["output"] is not None and os.path.realpath(given["output"]) == os.path.realpath(path):
        raise click.UsageError(f"-o is the file of the answers, {path}, which would be lost")
    from structsvm.annotate.inputs import read_inputs
    from structsvm.annotate.session import Session, names_of
    from structsvm.annotate.store import Store

    names = names_of(given["annotator"] or ["annotator"])
    offered = [] if labels is None else [name for name in labels.split(",") if name.strip()]
    task, how = given["task"], {"format": given["format"], "columns": given["column"], "encoding": given["encoding"]}
    inputs = read_inputs(file, task, **how)
    with closing(Store(path)) as store:
        session = Session(inputs, store, task, offered, given["order"])
        if agreement or given["export"] is not None:
            check_stdout()
            finish(session, given["export"], given["output"], agreement=agreement)
            return
        serve_page(session, names, given["host"], given["port"], opens=given["opens"])


def finish(session: Any, kind: str | None, output: str | None, *, agreement: bool) -> None:
    """Print the agreement, write an export."""
    for note in session.notes:
        click.echo(f"warning: {note}", err=True)
    if agreement:
        click.echo(str(session.agreement()))
    if kind is None or output is None:
        return
    from structsvm.annotate.exports import exported
    from structsvm.files.new_file import new_file

    found = exported(session, kind)
    with new_file(output) as stream:
        stream.write(found.data)
    if found.left_out:
        click.echo(f"warning: {found.left_out}", err=True)


def serve_page(session: Any, names: list[str], host: str, port: int, *, opens: bool) -> None:
    """Serve the page until Ctrl-C, each annotator at an address of their own."""
    with running.server_needed("structsvm annotate"):
        from structsvm.annotate.server import app_for

        tokens = {secrets.token_urlsafe(24): name for name in names}
        app = app_for(session, tokens, host)

    def started(address: str) -> None:
        for note in session.notes:
            click.echo(f"warning: {note}", err=True)
        for token, name in tokens.items():
            whose = f"{name}: " if len(tokens) > 1 else ""
            click.echo(f"{whose}{address}/?token={quote(token)}")
        click.echo(f"answers go to {Path(session.store.path)}; Ctrl-C ends", err=True)
        if opens:
            click.launch(f"{address}/?token={quote(next(iter(tokens)))}")

    running.run(app, host, port, started)
