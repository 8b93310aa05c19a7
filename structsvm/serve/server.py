"""The server of a model: its own predictions, and the protocols of annotation tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from structsvm.files.strict_json import parse_json
from structsvm.serve import inception, label_studio
from structsvm.serve.guard import Guard
from structsvm.serve.models import TextModel
from structsvm.serve.values import MAX_TEXTS, Object, a_list, a_text, an_object

# Documents of annotation tools are larger than answers of a page: INCEpTION sends all of a project, each word a line.
MAX_BODY = 2**25
LARGER = {"/inception/train": 2**28}
# Texts of a larger one, and its bytes between texts: many small values take up to 24 times their size.
MAX_PARTS = 2**20

Handler = Callable[[TextModel, Object], object]


def app_for(
    model: TextModel, host: str = "127.0.0.1", token: str | None = None, names: Sequence[str] = ()
) -> Starlette:
    """The application of a model.

    Parameters
    ----------
    model : TextModel
    host : str
        The address that it is bound to.
    token : str, optional
        Asked for in each request but ``GET /health``: as a bearer token, or as the password of basic authentication.
    names : sequence of str
        Further names by which the server is called, of a container say.
    """
    tokens = {} if token is None else {token: "client"}
    guard = Middleware(
        Guard, host=host, tokens=tokens, public=["/health"], max_body=MAX_BODY, larger=LARGER, names=names
    )
    posts: Mapping[str, Handler] = {
        "/predict": predict,
        "/setup": label_studio.setup,
        "/webhook": label_studio.webhook,
        "/train": label_studio.train,
        "/doccano": doccano,
        "/inception/predict": inception.predict,
        "/inception/train": inception.train,
    }
    gets: Mapping[str, Handler] = {
        "/": about,
        "/health": lambda model, _: label_studio.health(model),
        "/versions": lambda model, _: {"versions": [model.version]},
    }
    routes = [Route(path, _endpoint(model, handler), methods=["POST"]) for path, handler in posts.items()]
    routes += [Route(path, _endpoint(model, handler)) for path, handler in gets.items()]
    return Starlette(routes=routes, middleware=[guard])


def _endpoint(model: TextModel, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers with JSON, or with status 204 for nothing; errors of input have status 400."""

    async def endpoint(request: Request) -> Response:
        try:
            body = _object(await request.body())
            found = await run_in_threadpool(handler, model, body)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        except OSError as error:
            return JSONResponse({"error": f"the model is not stored: {error}"}, 507)
        return Response(status_code=204) if found is None else JSONResponse(found)

    return endpoint


def _check_parts(body: bytes) -> None:
    """Raise ValueError for a large body that is anything but a few long texts."""
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') > MAX_PARTS or sum(map(len, bare.split(b'"')[::2])) > MAX_PARTS:
        raise ValueError(f"a request of more than {MAX_BODY} bytes has more than {MAX_PARTS} parts")


def _object(body: bytes) -> Object:
    if len(body) > MAX_BODY:
        _check_parts(body)
    try:
        return an_object(parse_json(body) if body else {}, "a request")
    except RecursionError:
        raise ValueError("a request: JSON nested too deeply") from None


def about(model: TextModel, _: Object) -> object:
    """The model, its labels, and whether it learns."""
    labels = [str(label) for label in model.estimator.classes_.tolist()]
    return {
        "model": type(model.estimator).__name__,
        "version": model.version,
        "labels": labels,
        "learns": model.learns_to is not None,
    }


def predict(model: TextModel, request: Object) -> object:
    """Predictions for ``{"texts": [...]}`` or ``{"text": ...}``; for ``{"tasks": ...}``, as Label Studio has them.

    In place of a text, a list of its words.
    """
    given = [name for name in ("tasks", "texts", "words", "text") if request.get(name) is not None]
    if len(given) > 1:
        raise ValueError(f"a request has {' and '.join(given)}: one of them is read")
    if "tasks" in given:
        return label_studio.predict(model, request)
    if "texts" in given:
        texts = a_list(request["texts"], "texts", most=MAX_TEXTS)
        return {"predictions": [own.to_json() for own in model.predict([a_text(text, "texts") for text in texts])]}
    if "words" in given:
        words = [a_text(word, "words") for word in a_list(request["words"], "words")]
        if not all(word.split() for word in words):
            raise ValueError("words must be texts that are not blank")
        return _of_words(model, words)
    return model.predict([a_text(request.get("text"), "text")])[0].to_json()


def _of_words(model: TextModel, words: Sequence[str]) -> object:
    """The prediction for words, joined by blanks."""
    if not model.is_sequence:
        raise ValueError("words: the model has one label per text, send a text")
    places, start = [], 0
    for word in words:
        places.append((start, start + len(word)))
        start += len(word) + 1
    return model.predict_words(" ".join(words), places).to_json()


def doccano(model: TextModel, request: Object) -> object:
    """A list of labels or of spans, in the form that doccano's auto-labelling takes without a mapping template."""
    (found,) = model.predict([a_text(request.get("text"), "text")])
    if found.label is not None:
        return [{"label": found.label}]
    return [{"label": span.label, "start_offset": span.start, "end_offset": span.end} for span in found.spans]
