"""Continuous batching: waiting requests join the running ones between two steps of one token each.

The KV cache is counted in blocks. When none is free, the request that joined last goes back to the
queue and is computed again, as in vLLM.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from slipway_localcluster.language_server.metrics import Metrics
from slipway_localcluster.language_server.network import END, Cache, Network, sample

BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of the engine. `step_seconds` is the least time of a step: the CPU of the demo has other work too."""

    context_tokens: int = 2048
    requests: int = 16
    blocks: int = 1024
    step_seconds: float = 0.02


@dataclass(slots=True, eq=False)
class Sequence:
    """One request. `tokens` are those of the prompt and, after them, the generated ones."""

    tokens: list[int]
    prompt_tokens: int
    most_tokens: int
    temperature: float
    random: np.random.Generator
    arrived_at: float
    output: "asyncio.Queue[int | None]" = field(default_factory=asyncio.Queue)
    cache: Cache = field(default_factory=Cache)
    started_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float = 0.0
    finished_reason: str = ""
    is_aborted: bool = False

    @property
    def generated_tokens(self) -> int:
        return len(self.tokens) - self.prompt_tokens

    @property
    def blocks(self) -> int:
        return -(-len(self.tokens) // BLOCK_TOKENS)


class Engine:
    """The engine that generates tokens. `run` takes the steps; all other methods are called on its event loop."""

    def __init__(self, network: Network, limits: EngineLimits, metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self._network = network
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._arrival = asyncio.Event()
        self._is_aborting = False

    @property
    def is_idle(self) -> bool:
        return not (self._waiting or self._running)

    def abort(self) -> None:
        """End all requests with the reason "abort" at the next step."""
        self._is_aborting = True
        self._arrival.set()

    async def generate(
        self, prompt: list[int], *, most_tokens: int, temperature: float, seed: int | None
    ) -> AsyncGenerator[tuple[int, str], None]:
        """Yield each token with an empty reason, then END with the reason. Closing it ends the request."""
        sequence = Sequence(
            tokens=list(prompt),
            prompt_tokens=len(prompt),
            most_tokens=most_tokens,
            temperature=temperature,
            random=np.random.default_rng(seed),
            arrived_at=monotonic(),
        )
        self._waiting.append(sequence)
        self._arrival.set()
        try:
            while (token := await sequence.output.get()) is not None:
                yield token, ""
            yield END, sequence.finished_reason
        finally:
            sequence.is_aborted = not sequence.finished_reason
            self._arrival.set()

    async def run(self) -> None:
        while True:
            if self.is_idle:
                self._arrival.clear()
                self._report()
                await self._arrival.wait()
            began = monotonic()
            if self._is_aborting:
                self._abort_all()
            self._remove_aborted()
            self._make_room()
            self._admit()
            results = await asyncio.to_thread(self._step)
            self.metrics.step_time.inc(monotonic() - began)
            for sequence, token in results:
                if token != END:
                    sequence.output.put_nowait(token)
                if sequence.finished_reason:
                    sequence.output.put_nowait(None)
            self._report()
            await asyncio.sleep(max(0.0, self.limits.step_seconds - (monotonic() - began)))

    def _report(self) -> None:
        self.metrics.running.set(len(self._running))
        self.metrics.waiting.set(len(self._waiting))
        self.metrics.cache_usage.set(self._used_blocks() / self.limits.blocks)

    def _used_blocks(self) -> int:
        return sum(sequence.blocks for sequence in self._running)

    def _step(self) -> list[tuple[Sequence, int]]:
        """Generate one token of every running request, on a thread: `/health` answers meanwhile."""
        results = [(sequence, self._next_token(sequence)) for sequence in self._running]
        self._running = [item for item in self._running if not item.finished_reason]
        return results

    def _abort_all(self) -> None:
        for sequence in (*self._waiting, *self._running):
            sequence.finished_reason = "abort"
            sequence.output.put_nowait(None)
            self.metrics.finish("abort")
        self._waiting.clear()
        self._running.clear()

    def _remove_aborted(self) -> None:
        for sequence in [item for item in (*self._waiting, *self._running) if item.is_aborted]:
            self.metrics.finish("abort")
            if sequence in self._running:
                self._running.remove(sequence)
            else:
                self._waiting.remove(sequence)

    def _make_room(self) -> None:
        """Each running request may need one more block in this step."""
        while (
            len(self._running) > 1 and self._used_blocks() + len(self._running) > self.limits.blocks
        ):
            preempted = self._running.pop()
            preempted.cache = Cache()
            self._waiting.appendleft(preempted)
            self.metrics.preemptions.inc()

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.limits.requests:
            needed = self._used_blocks() + self._waiting[0].blocks + len(self._running) + 1
            if self._running and needed > self.limits.blocks:
                return
            sequence = self._waiting.popleft()
            if sequence.started_at is None:
                sequence.started_at = monotonic()
            self._running.append(sequence)

    def _next_token(self, sequence: Sequence) -> int:
        new = sequence.tokens[sequence.cache.length :]
        logits = self._network.logits(new, sequence.cache)
        token = sample(logits, sequence.temperature, sequence.random)
        if token == END:
            sequence.finished_reason = "stop"
        else:
            sequence.tokens.append(token)
            if (
                sequence.generated_tokens >= sequence.most_tokens
                or len(sequence.tokens) >= self.limits.context_tokens
            ):
                sequence.finished_reason = "length"
        self._record(sequence)
        return token

    def _record(self, sequence: Sequence) -> None:
        now, metrics = monotonic(), self.metrics
        metrics.generation_tokens.inc()
        if sequence.first_token_at is None:
            sequence.first_token_at = now
            metrics.prompt_tokens.inc(sequence.prompt_tokens)
            metrics.first_token.observe(now - sequence.arrived_at)
        else:
            metrics.between_tokens.observe(now - sequence.last_token_at)
        sequence.last_token_at = now
        if sequence.finished_reason:
            started = sequence.started_at or sequence.arrived_at
            metrics.finish(sequence.finished_reason)
            metrics.whole_request.observe(now - sequence.arrived_at)
            metrics.queue_time.observe(started - sequence.arrived_at)
            metrics.prefill_time.observe(sequence.first_token_at - started)
            metrics.decode_time.observe(now - sequence.first_token_at)
            metrics.inference_time.observe(now - started)
