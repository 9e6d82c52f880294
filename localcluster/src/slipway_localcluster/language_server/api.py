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
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from slipway_localcluster.language_server.engine import Engine
from slipway_localcluster.language_server.network import END

OWNER = "slipway-local-random-weights"
_COMPLETION_TOKENS = 16
_TEXT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
_EVENTS = "text/event-stream; charset=utf-8"
_Endpoint = Callable[[Request], Awaitable[Response]]


class Refused(Exception):
    """The request is answered with this status and message."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


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
        return Starlette(routes=routes, lifespan=self._lifespan)

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
                    "param": None,
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
            raise Refused(400, "BadRequestError", "prompt must be a non-empty string")
        return await self._answer(self._checked(body, prompt, is_chat=False))

    async def _chat(self, request: Request) -> Response:
        body = await _json(request)
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise Refused(400, "BadRequestError", "messages must be a non-empty list")
        lines = [_line(message) for message in messages]
        prompt = "\n".join([*lines, "assistant:"])
        return await self._answer(self._checked(body, prompt, is_chat=True))

    def _checked(self, body: dict[str, Any], prompt: str, *, is_chat: bool) -> Generation:
        model = body.get("model", self._models_served[0])
        if model not in self._names:
            raise Refused(404, "NotFoundError", f"The model `{model}` does not exist.")
        tokens = list(prompt.encode())
        longest = self._engine.limits.context_tokens
        if len(tokens) >= longest:
            raise Refused(
                400,
                "BadRequestError",
                f"The prompt has {len(tokens)} tokens, and the maximum context length is {longest}.",
            )
        default = longest - len(tokens) if is_chat else _COMPLETION_TOKENS
        most = body.get("max_completion_tokens") or body.get("max_tokens") or default
        temperature, seed = body.get("temperature", 1.0), body.get("seed")
        if not isinstance(most, int) or most < 1:
            raise Refused(400, "BadRequestError", f"max_tokens must be at least 1, got {most}.")
        if not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
            raise Refused(400, "BadRequestError", "temperature must be from 0 to 2.")
        if seed is not None and (not isinstance(seed, int) or seed < 0):
            raise Refused(400, "BadRequestError", "seed must be a whole number from 0.")
        options = body.get("stream_options") or {}
        return Generation(
            model=model,
            is_chat=is_chat,
            prompt=tokens,
            most_tokens=most,
            temperature=float(temperature),
            seed=seed,
            is_streamed=body.get("stream") is True,
            has_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    async def _answer(self, generation: Generation) -> Response:
        if self.is_closed:
            raise Refused(503, "ServiceUnavailableError", "the server is shutting down")
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
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise Refused(400, "BadRequestError", "the body is not JSON") from error
    if not isinstance(body, dict):
        raise Refused(400, "BadRequestError", "the body is not a JSON object")
    return body


def _line(message: object) -> str:
    if isinstance(message, dict):
        role, content = message.get("role"), message.get("content")
        if isinstance(role, str) and isinstance(content, str):
            return f"{role}: {content}"
    raise Refused(400, "BadRequestError", "each message needs a role and a content as text")
