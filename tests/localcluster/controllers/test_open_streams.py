"""Nothing that a language model generates is lost when its pod ends: a step of a rollout, a scale-in, a drain."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from deployments.spec.domain import engines
from deployments.spec.domain.serving_spec import Placement, ServingSpec
from tests.localcluster.controllers import language_models
from tests.localcluster.controllers.running import Running
from tests.localcluster.controllers.streams import Ended, Model
from tests.waiting import wait_for

# 0.02 s each: longer than the pod runner waits before SIGTERM.
_TOKENS = 300
_MINUTE = 60
_EVENTS = ("scale-in", "drain", "step")
_VLLM_OLD, _VLLM = "vllm/vllm-openai:v0.11.0", "vllm/vllm-openai:v0.32.0"
_VLLM_MIRRORED = "registry.example/models/vllm@sha256:" + "ab" * 32


def _spec(
    engine: str = "kserve-vllm", *, replicas: int = 2, grace: int | None = None
) -> ServingSpec:
    seconds = engines.default_grace_seconds(engine) if grace is None else grace
    return language_models.spec(engine).replace(
        min_replicas=replicas,
        max_replicas=replicas,
        termination_grace_seconds=seconds,
        # All GPUs of the simulated nodes: pods that end hold theirs.
        placement=Placement(other_instance_types="g4dn.12xlarge"),
    )


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(32) as threads:
        yield threads


def _end_pods(model: Model, event: str, spec: ServingSpec) -> None:
    if event == "step":
        model.step(spec)
    elif event == "scale-in":
        model.scale_in()
    else:
        model.drain()


def _results(streams: list[Future[Ended]]) -> set[Ended]:
    return {stream.result() for stream in streams}


@pytest.mark.parametrize(
    ("name", "engine", "image"),
    [
        ("current", "kserve-vllm", _VLLM),
        ("old", "kserve-vllm", _VLLM_OLD),
        ("mirrored", "kserve-vllm", _VLLM_MIRRORED),
        ("sglang", "kserve-sglang", _VLLM),
    ],
)
def test_no_stream_is_cut(
    cluster: Running, pool: ThreadPoolExecutor, name: str, engine: str, image: str
) -> None:
    spec = _spec(engine)
    model = Model(cluster, name, image)
    model.deploy(1, spec)
    model.route({1: 100}, spec)

    ended = {}
    for event in _EVENTS:
        streams = model.open_streams(pool, 1, _TOKENS)
        _end_pods(model, event, spec)
        ended[event] = _results(streams)
        if event != "step":
            wait_for(f"one pod is ready after {event}", lambda: model.ready_pods(1))

    assert ended == {event: {Ended(_TOKENS, "length")} for event in _EVENTS}
    model.remove()


def test_a_revision_of_before_the_setting_loses_them(
    cluster: Running, pool: ThreadPoolExecutor
) -> None:
    """What the tests above would miss if a server drained by itself."""
    spec = _spec(grace=0, replicas=1)
    model = Model(cluster, "before", _VLLM_OLD)
    model.deploy(1, spec)
    model.route({1: 100}, spec)
    streams = model.open_streams(pool, 1, _TOKENS)

    model.drain()

    assert {ended.reason for ended in _results(streams)} == {"abort"}
    model.remove()


def test_a_stream_of_a_minute_outlives_all_three(
    cluster: Running, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the real clock: the grace used to be 35 seconds."""
    monkeypatch.setenv("LOCALCLUSTER_STEP_SECONDS", "0.1")
    tokens = 10 * _MINUTE
    specs = {event: _spec(replicas=2 if event == "scale-in" else 1) for event in _EVENTS}
    models = {event: Model(cluster, f"minute-{event}") for event in _EVENTS}
    for event, model in models.items():
        model.deploy(1, specs[event])
        model.route({1: 100}, specs[event])
    streams = {event: model.open_streams(pool, 1, tokens) for event, model in models.items()}

    for event, model in models.items():
        _end_pods(model, event, specs[event])

    for event in _EVENTS:
        assert _results(streams[event]) == {Ended(tokens, "length")}, event
    for model in models.values():
        model.remove()
