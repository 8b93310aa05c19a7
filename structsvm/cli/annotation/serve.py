"""The command `serve`: predictions of a model over HTTP, and the protocols of annotation tools."""

from __future__ import annotations

import os

import click

from structsvm.cli.annotation import running
from structsvm.cli.output import FILE, Output


@click.command()
@click.argument("model", type=FILE)
@click.option("--host", default=running.LOOPBACK, show_default=True, help="Address to serve on; another needs --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=9090, show_default=True, help="0: any free one.")
@click.option("--token", envvar="STRUCTSVM_TOKEN", show_envvar=True, help="Asked for in each request.")
@click.option("--name", "names", multiple=True, help="Another name by which programs call this server.")
@click.option("--learn", type=Output(replaces="model"), help="Learn from annotation tools; the model is stored here.")
def serve(model: str, host: str, port: int, token: str | None, names: tuple[str, ...], learn: str | None) -> None:
    """Serve predictions of MODEL to programs and annotation tools.

    POST /predict takes {"text": ...} or {"texts": [...]}. Label Studio connects to the address itself, INCEpTION to
    /inception, doccano posts to /doccano. MODEL is one of label sequences of words, or of texts in classes.
    """
    with running.server_needed("structsvm serve"):
        from structsvm.serve.guard import is_loopback
        from structsvm.serve.models import TextModel
        from structsvm.serve.server import app_for

    if token is not None and not token.strip():
        raise click.BadParameter("it is empty", param_hint="--token")
    if token is None and not is_loopback(host):
        raise click.UsageError(f"--host {host} lets other machines ask: give a --token, which they have to send")
    if learn is not None and os.path.exists(learn) and not os.path.samefile(learn, model):
        raise click.UsageError(
            f"--learn {learn} is there, and what {model} learns would replace it: serve {learn} itself, which goes on "
            "from it, or give another name"
        )
    app = app_for(TextModel(model, learn), host, token, names)

    def started(address: str) -> None:
        click.echo(address)
        click.echo("Ctrl-C ends", err=True)

    running.run(app, host, port, started)
