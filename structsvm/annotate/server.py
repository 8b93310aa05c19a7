"""The server of the labelling page: answers as JSON, exports as files, and the page's own three files."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import PurePath

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from structsvm.annotate.exports import exported
from structsvm.annotate.session import Session
from structsvm.files.strict_json import parse_json
from structsvm.serve.guard import Guard, Refused

PAGE = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# Rows of one slice of the texts, at most.
MAX_ROWS = 200
MAX_PLACE = 10**9

Handler = Callable[[Session, Request, Mapping[str, object]], object]


def app_for(session: Session, tokens: Mapping[str, str], host: str = "127.0.0.1") -> Starlette:
    """The application of a session; `tokens` are the annotators' names by their tokens.

    It answers under the loopback names, or, bound to another `host`, under this one.
    """
    public = [path for path in PAGE if path != "/"]
    guard = Middleware(Guard, host=host, tokens=tokens, public=public)
    page = [Route(path, _file(name)) for path, name in PAGE.items()]
    gets = {"state": _state, "next": _next, "items": _items, "items/{item}": _item, "why/{item}": _why}
    gets |= {"curve": _curve, "agreement": _agreement}
    posts = {"answers": _answer, "undo": _undo, "labels": _label}
    routes = [Route(f"/api/{path}", _endpoint(session, handler)) for path, handler in gets.items()]
    routes += [Route(f"/api/{path}", _endpoint(session, handler), methods=["POST"]) for path, handler in posts.items()]
    routes.append(Route("/api/export/{kind}", _download(session)))
    return Starlette(routes=[*page, *routes], middleware=[guard])


def _file(name: str) -> Callable[[Request], Response]:
    data = files("structsvm.annotate").joinpath("page", name).read_bytes()

    def endpoint(request: Request) -> Response:
        return Response(data, media_type=TYPES[PurePath(name).suffix])

    return endpoint


def _endpoint(session: Session, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers with JSON; errors of input have status 400, those of the disk 507."""

    async def endpoint(request: Request) -> Response:
        try:
            body = _object(await request.body())
            return JSONResponse(await run_in_threadpool(handler, session, request, body))
        except Refused as error:
            return JSONResponse({"error": str(error)}, error.status)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        except OSError as error:
            return JSONResponse({"error": f"not saved: {error}"}, 507)

    return endpoint


def _object(body: bytes) -> Mapping[str, object]:
    """The JSON object of a request; empty for none."""
    try:
        value: object = parse_json(body) if body else {}
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("a request is a JSON object")
    return value


def _by(request: Request) -> str:
    return str(request.state.by)


def _number(text: str | None, name: str, default: int, most: int) -> int:
    """A number of a query."""
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"{name} must be a number from 0, got {text!r:.40}")
    return min(int(text), most)


def _place(request: Request) -> int:
    """The number of a text in an address."""
    return _number(request.path_params["item"], "item", 0, MAX_PLACE)


def _page(request: Request) -> str:
    """The name of the browser's page."""
    return request.query_params.get("page", "")[:40]


def _state(session: Session, request: Request, _: Mapping[str, object]) -> object:
    return session.state(_by(request))


def _next(session: Session, request: Request, _: Mapping[str, object]) -> object:
    """The next question with the state, as after an answer."""
    by = _by(request)
    with session.lock:
        k = session.next(by, _page(request))
        return {"item": None if k is None else session.shown(k, by), "state": session.state(by)}


def _items(session: Session, request: Request, _: Mapping[str, object]) -> object:
    n = len(session.inputs.items)
    offset = _number(request.query_params.get("offset"), "offset", 0, n)
    limit = _number(request.query_params.get("limit"), "limit", MAX_ROWS, MAX_ROWS)
    return {"total": n, "offset": offset, "items": session.rows(_by(request), offset, limit)}


def _item(session: Session, request: Request, _: Mapping[str, object]) -> object:
    return session.shown(_place(request), _by(request))


def _why(session: Session, request: Request, _: Mapping[str, object]) -> object:
    return session.why(_place(request))


def _curve(session: Session, request: Request, _: Mapping[str, object]) -> object:
    return session.curve()


def _agreement(session: Session, request: Request, _: Mapping[str, object]) -> object:
    found = session.agreement()
    return {"text": str(found), "units": found.n_units}


def _answer(session: Session, request: Request, body: Mapping[str, object]) -> object:
    item, value = body.get("item"), body.get("answer")
    if type(item) is not int:
        raise ValueError("item must be the number of a text")
    if "answer" not in body:
        raise ValueError("answer is missing; null skips the text")
    session.answer(item, value, _by(request))
    return _next(session, request, body)


def _undo(session: Session, request: Request, _: Mapping[str, object]) -> object:
    by = _by(request)
    with session.lock:
        before = session.last_answer(by)
        k = session.undo(by, _page(request))
        item = None if k is None or k < 0 else session.shown(k, by)
        if item is not None and before is not None:
            item["answer"] = before.to_json()
        return {"undone": k is not None, "item": item, "state": session.state(by)}


def _label(session: Session, request: Request, body: Mapping[str, object]) -> object:
    session.add_label(body.get("label"), _by(request))
    return session.state(_by(request))


def _download(session: Session) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            found = await run_in_threadpool(exported, session, request.path_params["kind"])
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", PurePath(session.inputs.path).stem) or "answers"
        headers = {"Content-Disposition": f'attachment; filename="{name}{found.ending}"', "X-Left-Out": found.left_out}
        return Response(found.data, media_type=found.media_type, headers=headers)

    return endpoint
