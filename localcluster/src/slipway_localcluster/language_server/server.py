"""The server's end, as that of vLLM and SGLang."""

from time import monotonic
from types import FrameType

import uvicorn

from slipway_localcluster.language_server.api import CompletionApi
from slipway_localcluster.language_server.engine import Engine

# For clients that do not read what they asked for.
_FLUSH_SECONDS = 5


class LanguageServer(uvicorn.Server):
    """At SIGTERM vLLM refuses new requests, and aborts the running ones after `drain_seconds`, by default at
    once. None: SGLang, which goes on until it runs none.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        api: CompletionApi,
        engine: Engine,
        *,
        drain_seconds: float | None,
    ) -> None:
        config.timeout_graceful_shutdown = _FLUSH_SECONDS
        super().__init__(config)
        self._api = api
        self._engine = engine
        self._drain_seconds = drain_seconds
        self._has_signal = False
        self._signalled_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._has_signal = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server may end. Called ten times a second."""
        ends = await super().on_tick(counter)
        return ends or (self._has_signal and self._has_drained())

    def _has_drained(self) -> bool:
        self._signalled_at = self._signalled_at or monotonic()
        if self._drain_seconds is not None:
            self._api.is_closed = True
            if monotonic() - self._signalled_at >= self._drain_seconds:
                self._engine.abort()
        return self._engine.is_idle
