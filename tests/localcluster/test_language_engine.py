"""Batching, queue and KV cache of the local language server, as its metrics show them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

from prometheus_client.parser import text_string_to_metric_families

from slipway_localcluster.language_server.engine import Engine, EngineLimits
from slipway_localcluster.language_server.metrics import Metrics
from slipway_localcluster.language_server.network import Cache, Network

NETWORK = Network("chat")
PROMPT = list(b"What is a pod?")


def engine(**limits: int) -> Engine:
    return Engine(NETWORK, EngineLimits(step_seconds=0.0, **limits), Metrics("chat"))


def values(engine: Engine) -> dict[str, float]:
    families = text_string_to_metric_families(engine.metrics.text().decode())
    samples = [sample for family in families for sample in family.samples]
    return {
        sample.name.removeprefix("vllm:") + sample.labels.get("finished_reason", ""): sample.value
        for sample in samples
    }


async def text_of(engine: Engine, most_tokens: int, seed: int = 1) -> tuple[list[int], str]:
    pairs = [
        pair
        async for pair in engine.generate(
            PROMPT, most_tokens=most_tokens, temperature=0.0, seed=seed
        )
    ]
    return [token for token, _ in pairs], pairs[-1][1]


async def together(engine: Engine, count: int, most_tokens: int) -> list[tuple[list[int], str]]:
    steps = asyncio.create_task(engine.run())
    results = await asyncio.gather(*(text_of(engine, most_tokens) for _ in range(count)))
    steps.cancel()
    with suppress(asyncio.CancelledError):
        await steps
    return results


def test_the_cache_changes_nothing_but_the_work() -> None:
    whole, parts = Cache(), Cache()

    at_once = NETWORK.logits(PROMPT, whole)
    NETWORK.logits(PROMPT[:5], parts)
    in_parts = NETWORK.logits(PROMPT[5:], parts)

    assert whole.length == parts.length == len(PROMPT)
    assert int(at_once.argmax()) == int(in_parts.argmax())
    assert float(abs(at_once[32:127] - in_parts[32:127]).max()) < 1e-4


def test_requests_beyond_the_batch_wait_and_all_get_the_same_text() -> None:
    batch = engine(requests=2)

    results = asyncio.run(together(batch, 5, 6))

    assert {tuple(tokens) for tokens, _ in results} == {tuple(results[0][0])}
    shown = values(batch)
    assert shown["request_success_totallength"] == 5
    assert shown["generation_tokens_total"] == 30
    assert shown["num_preemptions_total"] == 0
    assert (shown["num_requests_running"], shown["num_requests_waiting"]) == (0, 0)


def test_a_full_cache_preempts_and_the_text_is_the_same() -> None:
    alone = asyncio.run(together(engine(), 1, 40))[0]
    # 14 + 40 tokens are four blocks: two requests do not fit into six blocks until their end.
    narrow = engine(blocks=6)

    results = asyncio.run(together(narrow, 2, 40))

    assert [result == alone for result in results] == [True, True]
    shown = values(narrow)
    assert shown["num_preemptions_total"] >= 1
    # A request that is computed again is neither counted nor timed from its start again.
    assert shown["prompt_tokens_total"] == 2 * len(PROMPT)
    assert shown["time_to_first_token_seconds_count"] == 2


def test_a_client_that_leaves_ends_its_request() -> None:
    left = engine()

    async def leave() -> None:
        steps = asyncio.create_task(left.run())
        generated = left.generate(PROMPT, most_tokens=2000, temperature=0.0, seed=1)
        async with aclosing(generated) as tokens:
            await anext(tokens)
        while values(left)["request_success_totalabort"] == 0:
            await asyncio.sleep(0)
        steps.cancel()

    asyncio.run(asyncio.wait_for(leave(), timeout=30))

    assert values(left)["request_success_totallength"] == 0
