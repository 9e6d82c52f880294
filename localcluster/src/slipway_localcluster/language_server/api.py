"""The part of OpenAI's API, as vLLM and SGLang answer it, that needs no trained model."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from slipway_localcluster.language_server.engine import Engine
from slipway_localcluster.language_server.network import END

OWNER = "slipway-local-random-weights"
_COMPLETION_TOKENS = 16
_HIGHEST_TEMPERATURE = 2
_NO_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
_TEXT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
_EVENTS = "text/event-stream; charset=utf-8"
_JSON_TYPE = "application/json"
# The kinds of refusals: of a value, and of a body that has not the form of the API's.
_REQUEST = "BadRequestError"
_FORM = "Bad Request"
_Endpoint = Callable[[Request], Awaitable[Response]]


class Refused(Exception):
    """The request is answered with this status and message. `param` names what is wrong."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = _REQUEST, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param


@dataclass(frozen=True, slots=True)
class Generation:
    """A checked request."""

    model: str
    is_chat: bool
    prompt: list[int]
    most_tokens: int
    temperature: float
    seed: int | None
    is_streamed: bool
    has_usage: bool


class CompletionApi:
    """The HTTP API of the language server. `models` are the model and its adapters, which answer as it does: no
    adapter is loaded. A request names an adapter as `adapter_form` says.
    """

    def __init__(
        self, models: Sequence[str], engine: Engine, *, adapter_form: str = "{adapter}"
    ) -> None:
        self._models_served = tuple(models)
        base, *adapters = models
        self._names = {base, *(adapter_form.format(model=base, adapter=a) for a in adapters)}
        self._engine = engine
        self._started = int(time.time())
        # vLLM refuses new requests once it shuts down.
        self.is_closed = False

    def application(self) -> Starlette:
        routes = [
            Route("/health", self._health),
            # SGLang's, which there generates a token.
            Route("/health_generate", self._health),
            Route("/metrics", self._metrics),
            self._route("/v1/models", self._models, "GET"),
            self._route("/v1/completions", self._completions, "POST"),
            self._route("/v1/chat/completions", self._chat, "POST"),
        ]
        handlers: dict[Any, Any] = {HTTPException: _answer_as_fastapi}
        return Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=handlers)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        steps = asyncio.create_task(self._engine.run())
        yield
        steps.cancel()
        with suppress(asyncio.CancelledError):
            await steps

    def _route(self, path: str, endpoint: _Endpoint, method: str) -> Route:
        async def counted(request: Request) -> Response:
            try:
                response = await endpoint(request)
            except Refused as refusal:
                error = {
                    "message": str(refusal),
                    "type": refusal.kind,
                    "param": refusal.param,
                    "code": refusal.status,
                }
                response = JSONResponse({"error": error}, refusal.status)
            self._engine.metrics.answer(path, method, response.status_code)
            return response

        return Route(path, counted, methods=[method])

    async def _health(self, _: Request) -> Response:
        return Response()

    async def _metrics(self, _: Request) -> Response:
        return Response(self._engine.metrics.text(), media_type=_TEXT_TYPE)

    async def _models(self, _: Request) -> Response:
        base = self._models_served[0]
        listed = [
            {
                "id": name,
                "object": "model",
                "created": self._started,
                "owned_by": OWNER,
                "root": name,
                "parent": None if name == base else base,
                "max_model_len": self._engine.limits.context_tokens,
            }
            for name in self._models_served
        ]
        return JSONResponse({"object": "list", "data": listed})

    async def _completions(self, request: Request) -> Response:
        body = await _json(request)
        prompt = body.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            raise _of_parameter(
                "prompt", "Either prompt or prompt_embeds must be provided and non-empty."
            )
        return await self._answer(self._checked(body, prompt, is_chat=False))

    async def _chat(self, request: Request) -> Response:
        body = await _json(request)
        if "messages" not in body:
            raise _of_form("missing", "body.messages", "Field required", body)
        _check_form(body)
        self._check_model(body)
        if body.get("tools") and body.get("tool_choice", "auto") == "auto":
            raise Refused(_NO_TOOLS)
        messages = body["messages"]
        if not isinstance(messages, list) or not messages:
            raise Refused(
                "Cannot apply chat template to an empty conversation. Provide at least one message."
            )
        lines = [_line(message) for message in messages]
        prompt = "\n".join([*lines, "assistant:"])
        return await self._answer(self._checked(body, prompt, is_chat=True))

    def _check_model(self, body: dict[str, Any]) -> str:
        base = self._models_served[0]
        model = body.get("model", base)
        if model not in self._names:
            message = f"The model `{model}` does not exist. Valid aliases: {base}."
            raise Refused(message, status=404, kind="NotFoundError", param="model")
        return str(model)

    def _checked(self, body: dict[str, Any], prompt: str, *, is_chat: bool) -> Generation:
        _check_form(body)
        model = self._check_model(body)
        tokens = list(prompt.encode())
        longest = self._engine.limits.context_tokens
        if len(tokens) > longest:
            raise _of_parameter(
                "input_tokens",
                f"This model's maximum context length is {longest} tokens. However, your prompt contains at "
                f"least {longest + 1} input tokens, which exceeds this limit even without any output tokens. "
                "Please reduce the length of the input prompt.",
                longest + 1,
            )
        most = _first_stated(body, ("max_completion_tokens", "max_tokens"))
        if most is None:
            most = max(1, longest - len(tokens)) if is_chat else _COMPLETION_TOKENS
        elif most > longest:
            raise _of_parameter(
                "max_tokens",
                f"max_tokens={most} cannot be greater than max_model_len={longest}. Please request fewer "
                "output tokens.",
                most,
            )
        if most < 1:
            raise _of_parameter("max_tokens", f"max_tokens must be at least 1, got {most}.", most)
        temperature = float(body.get("temperature", 1.0))
        _check_temperature(temperature)
        options = body.get("stream_options") or {}
        return Generation(
            model=model,
            is_chat=is_chat,
            prompt=tokens,
            most_tokens=most,
            temperature=temperature,
            seed=_seed_of(body.get("seed")),
            is_streamed=body.get("stream") is True,
            has_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    async def _answer(self, generation: Generation) -> Response:
        if self.is_closed:
            raise Refused("the server is shutting down", status=503, kind="ServiceUnavailableError")
        tokens = self._engine.generate(
            generation.prompt,
            most_tokens=generation.most_tokens,
            temperature=generation.temperature,
            seed=generation.seed,
        )
        head = self._head(generation)
        if generation.is_streamed:
            return StreamingResponse(_events(generation, head, tokens), media_type=_EVENTS)
        pairs = [pair async for pair in tokens]
        text = "".join(_text(token) for token, _ in pairs)
        choice = _choice(generation, text, pairs[-1][1], is_delta=False)
        return JSONResponse({**head, "choices": [choice], "usage": _usage(generation, pairs)})

    def _head(self, generation: Generation) -> dict[str, Any]:
        kind = "chat.completion" if generation.is_chat else "text_completion"
        return {
            "id": f"{'chatcmpl' if generation.is_chat else 'cmpl'}-{secrets.token_hex(16)}",
            "object": f"{kind}.chunk" if generation.is_chat and generation.is_streamed else kind,
            "created": int(time.time()),
            "model": generation.model,
        }


async def _events(
    generation: Generation, head: dict[str, Any], tokens: AsyncGenerator[tuple[int, str], None]
) -> AsyncIterator[bytes]:
    pairs = []
    if generation.is_chat:
        role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        yield _event({**head, "choices": [role]})
    # A client that leaves ends the request at once.
    async with aclosing(tokens):
        async for token, reason in tokens:
            pairs.append((token, reason))
            choice = _choice(generation, _text(token), reason, is_delta=True)
            yield _event({**head, "choices": [choice]})
    if generation.has_usage:
        yield _event({**head, "choices": [], "usage": _usage(generation, pairs)})
    yield b"data: [DONE]\n\n"


def _event(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body)}\n\n".encode()


def _choice(generation: Generation, text: str, reason: str, *, is_delta: bool) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "finish_reason": reason or None, "logprobs": None}
    if not generation.is_chat:
        return {**choice, "text": text}
    if is_delta:
        return {**choice, "delta": {"content": text}}
    return {**choice, "message": {"role": "assistant", "content": text}}


def _text(token: int) -> str:
    return "" if token == END else chr(token)


def _usage(generation: Generation, pairs: list[tuple[int, str]]) -> dict[str, int]:
    """Count the tokens as vLLM does: a token that ends the text counts; the pair that only says why it ended does
    not.
    """
    prompt = len(generation.prompt)
    generated = len(pairs) - (pairs[-1][1] != "stop")
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
    }


async def _json(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0] != _JSON_TYPE:
        message = f"1 validation error:\n  Unsupported Media Type: Only '{_JSON_TYPE}' is allowed"
        raise Refused(message, kind=_FORM)
    try:
        body = json.loads(await request.body())
    except json.JSONDecodeError as error:
        where, more = f"body.{error.pos}", f", 'ctx': {{'error': '{error.msg}'}}"
        raise _of_form("json_invalid", where, "JSON decode error", {}, more) from error
    except (ValueError, RecursionError) as error:
        raise Refused("There was an error parsing the body", kind=_FORM) from error
    if not isinstance(body, dict):
        message = "Input should be a valid dictionary or object to extract fields from"
        raise _of_form("model_attributes_type", "body", message, body)
    return body


def _check_form(body: dict[str, Any]) -> None:
    """Check the types of what is read of a body."""
    for name in ("max_completion_tokens", "max_tokens", "seed"):
        if not isinstance(body.get(name), int | None):
            message = "Input should be a valid integer, unable to parse string as an integer"
            raise _of_form("int_parsing", f"body.{name}", message, body[name])
    if not isinstance(body.get("temperature"), int | float | None):
        message = "Input should be a valid number, unable to parse string as a number"
        raise _of_form("float_parsing", "body.temperature", message, body["temperature"])
    if body.get("stream_options") and body.get("stream") is not True:
        message = "Stream options can only be defined when `stream=True`."
        raise _of_parameter("stream_options", message)


def _check_temperature(temperature: float) -> None:
    if temperature < 0:
        message = f"temperature must be non-negative, got {temperature}."
        raise _of_parameter("temperature", message, temperature)
    if not temperature <= _HIGHEST_TEMPERATURE:
        message = f"temperature must be in [0, 2], got {temperature}."
        raise _of_parameter("temperature", message, temperature)


def _first_stated(body: dict[str, Any], names: Sequence[str]) -> int | None:
    return next((int(body[name]) for name in names if body.get(name) is not None), None)


def _seed_of(stated: int | None) -> int | None:
    """Return a seed for numpy, which takes no negative one."""
    return None if stated is None else stated % 2**63


def _of_parameter(name: str, message: str, value: object = None) -> Refused:
    stated = "" if value is None else f", value={value}"
    return Refused(f"{message} (parameter={name}{stated})", param=name)


def _of_form(kind: str, where: str, message: str, given: object, more: str = "") -> Refused:
    shown = (
        f"<{type(given).__name__} of {len(given)} items>"
        if isinstance(given, dict | list)
        else given
    )
    detail = f"{{'type': '{kind}', 'loc': '{where}', 'msg': '{message}', 'input': '{shown}'{more}}}"
    return Refused(f"1 validation error:\n  {detail}", kind=_FORM, param=where)


async def _answer_as_fastapi(_: Request, error: Exception) -> Response:
    """Answer a path or method that there is not, as the framework of vLLM does."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "Internal Server Error"
    return JSONResponse({"detail": detail}, status)


def _line(message: object) -> str:
    if isinstance(message, dict):
        role, content = message.get("role"), message.get("content")
        if isinstance(role, str) and isinstance(content, str):
            return f"{role}: {content}"
    raise Refused("each message needs a role and a content as text")
