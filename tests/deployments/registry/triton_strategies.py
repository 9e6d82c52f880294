"""Settings of config.pbtxt and signatures that fit them, drawn by Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain.model_settings import Batching, ModelSettings
from deployments.spec.domain.triton_scheduling import Queue, Sequence
from deployments.spec.domain.triton_settings import (
    Instances,
    Optimization,
    TritonSettings,
    WarmUpRequests,
)

MAX_BATCH = 32
BATCHED = Signature(
    inputs=(
        Tensor("image", "FP32", (-1, 3, -1)),
        Tensor("start", "INT32", (-1, 1)),
        Tensor("end", "BOOL", (-1, 1)),
        Tensor("id", "UINT64", (-1, 1)),
        Tensor("h_in", "FP32", (-1, 8)),
    ),
    outputs=(Tensor("class", "INT64", (-1,)), Tensor("h_out", "FP32", (-1, 8))),
    max_batch_size=MAX_BATCH,
)


def _sizes(most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(1, most), max_size=3, unique=True).map(tuple)


_resources = st.dictionaries(st.sampled_from(["slots", "R.1"]), st.integers(1, 9)).map(
    lambda pairs: tuple(f"{name}={count}" for name, count in pairs.items())
)


def _per_level(levels: int, default: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Zeros alone, and the default alone, say what an empty list says, and that is how they are read back."""
    values = st.lists(st.integers(0, 10**9), min_size=levels, max_size=levels)
    return values.map(lambda row: tuple(row) if any(row) and set(row) != {default} else ())


@st.composite
def _queues(draw: st.DrawFn) -> Queue:
    levels = draw(st.integers(0, 3))
    max_size, timeout_us = draw(st.integers(0, 1_000_000)), draw(st.integers(0, 10**9))
    return Queue(
        max_size=max_size,
        timeout_us=timeout_us,
        timeout_action=draw(st.sampled_from(["reject", "delay"])),
        allow_timeout_override=draw(st.booleans()),
        priority_levels=levels,
        default_priority_level=draw(st.integers(1, levels)) if levels else 0,
        priority_max_sizes=draw(_per_level(levels, max_size)),
        priority_timeouts_us=draw(_per_level(levels, timeout_us)),
    )


@st.composite
def _sequences(draw: st.DrawFn, most: int) -> Sequence:
    is_direct = draw(st.booleans())
    made: dict[str, Any] = {"strategy": "direct" if is_direct else "oldest"}
    if is_direct:
        made["minimum_slot_utilization_percent"] = draw(st.integers(0, 100))
    else:
        made["max_candidate_sequences"] = draw(st.integers(1, 100_000))
        made["preferred_batch_sizes"] = draw(_sizes(most))
    return Sequence(
        max_idle_us=draw(st.integers(1, 10**9)),
        max_queue_delay_us=draw(st.integers(0, 1_000_000)),
        start_input=draw(st.sampled_from(["", "start"])),
        end_input=draw(st.sampled_from(["", "end"])),
        correlation_input=draw(st.sampled_from(["", "id"])),
        states=draw(st.sampled_from([(), ("h_in=h_out",)])),
        **made,
    )


@st.composite
def model_settings(draw: st.DrawFn) -> ModelSettings:
    """Every setting with a field of config.pbtxt, at many values."""
    smaller = draw(st.sampled_from([0, 1, MAX_BATCH - 1]))
    most = smaller or MAX_BATCH
    sequence = draw(st.none() | _sequences(most))
    is_dynamic = sequence is None and draw(st.booleans())
    is_gpu = draw(st.booleans())
    precision: Any = draw(st.sampled_from(["original", "fp16", "bf16"] if is_gpu else ["original"]))
    policy: Any = draw(st.sampled_from(["latest", "all", "specific"]))
    versions: Any = {"latest": st.sampled_from([(), (3,)]), "all": st.just(())}.get(
        policy, st.sampled_from([(1,), (1, 7)])
    )
    warm_up = WarmUpRequests()
    has_warm_up = draw(st.booleans())
    if has_warm_up:
        warm_up = WarmUpRequests(
            data=draw(st.sampled_from(["zeros", "random"])),
            batch_sizes=draw(_sizes(most).filter(lambda sizes: sizes != (1,))),
            count=draw(st.integers(1, 100)),
            shapes=draw(st.sampled_from([(), ("image=3x640",)])),
        )
    return ModelSettings(
        batching=Batching(
            is_dynamic=is_dynamic,
            max_queue_delay_us=draw(st.integers(0, 1_000_000)) if is_dynamic else 0,
            preferred_batch_sizes=draw(_sizes(most)) if is_dynamic else (),
            preserve_ordering=is_dynamic and draw(st.booleans()),
            max_batch_size=smaller,
        ),
        instances_per_gpu=draw(st.integers(1, 16)),
        warm_up=has_warm_up,
        precision=precision,
        triton=TritonSettings(
            queue=draw(_queues()) if is_dynamic else Queue(),
            sequence=sequence,
            instances=Instances(
                kind="gpu" if is_gpu else "cpu",
                gpus=draw(st.sampled_from([(), (0,), (0, 3)])) if is_gpu else (),
                priority=draw(st.integers(0, 1000)),
                resources=draw(_resources),
                global_resources=draw(_resources),
            ),
            warm_up=warm_up,
            optimization=Optimization(
                tensorrt_workspace_mib=draw(st.sampled_from([0, 512]))
                if precision != "original"
                else 0,
                graph_level=draw(st.integers(-1, 1)),
                input_pinned_memory=draw(st.booleans()),
                output_pinned_memory=draw(st.booleans()),
                eager_batching=draw(st.booleans()),
            ),
            # The text says that it is on; its size is an argument of the server.
            response_cache_mib=0 if sequence else draw(st.sampled_from([0, 256])),
            version_policy=policy,
            versions=draw(versions),
            parameters=draw(st.sampled_from([(), ("intra_op_thread_count=2",)])),
            metric_tags=draw(st.sampled_from([(), ("tier=gold",)])),
        ),
    )
