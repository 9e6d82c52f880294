"""Requests that wait longer than they are executed: when batches or instances let replicas go, and when not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from deployments.advice.domain.facts import DeploymentFacts
from deployments.sizing.domain.memory import FileModel
from deployments.spec.domain.serving_spec import Batching, ServingSpec
from tests.deployments.advice.known_facts import PRICE, evidence_of, facts_of, hours_of, kinds_of

FILE = FileModel(weights_mib=6000, activations_mib=1000, spread_mib=0, sizes="", runtime_mib=1000)
OFF = Batching(is_dynamic=False)
REQUESTS = 100


def _queued(
    *,
    busy: float,
    replicas: int = 4,
    wait_us: int = 60_000,
    compute_us: int = 20_000,
    items: float = 1,
    batching: Batching = OFF,
    spec: dict[str, Any] | None = None,
    **fields: Any,
) -> DeploymentFacts:
    """Each hour has 100 requests of callers, all executed."""
    hours = [
        replace(
            hour,
            served=REQUESTS,
            queue_us=REQUESTS * wait_us,
            compute_us=REQUESTS * compute_us,
            inferences=round(REQUESTS * items),
            executions=REQUESTS,
        )
        for hour in hours_of(busy=busy, replicas=replicas)
    ]
    values: dict[str, Any] = {"max_batch_size": 8, "file": FILE, **fields}
    return facts_of(hours, replicas=replicas, spec={"batching": batching, **(spec or {})}, **values)


def test_waiting_requests_as_one_batch_need_fewer_replicas() -> None:
    # Three executions pass while a request waits: four items a batch, each in 5/8 of the time of one alone.
    # 2.4 busy replicas x 0.625 / 0.7 are 2.1.
    facts = _queued(busy=0.6)
    kinds = kinds_of(facts)

    assert list(kinds) == ["larger-batches"]
    saving = kinds["larger-batches"]
    assert saving.message == (
        "Turn on dynamic batching and run 3 replicas instead of 4: a request waits 60.0 ms and is executed "
        "in 20.0 ms."
    )
    assert saving.saving_amount == Decimal("734.38")
    assert saving.formula == (
        "2.40 busy replicas \N{MULTIPLICATION SIGN} 0.62 ÷ 1.00 of the time of an item ÷ 70% = 3 replicas; "
        "(4 \N{MINUS SIGN} 3) \N{MULTIPLICATION SIGN} $1.0060/h \N{MULTIPLICATION SIGN} 730 h = $734.38"
    )
    assert evidence_of(saving) == {
        "Waiting, 7 days": "75% of a request's time in Triton",
        "Compute per request": "20.0 ms",
        "Mean batch size now": "1.0",
        "New batch size": "4 of at most 8",
        "Busiest hour": "GPU time of 2.40 replicas",
        "GPU memory needed": "8,000 of 24,576 MiB",
    }
    assert saving.risk == "medium"
    assert "was not measured" in saving.risk_reason
    assert saving.proposal is not None
    spec = ServingSpec.from_json({**facts.spec.to_json(), **saving.proposal.settings})
    assert (spec.batching.is_dynamic, spec.min_replicas, spec.max_replicas) == (True, 3, 3)


@pytest.mark.parametrize(
    ("busy", "needed"),
    # 4 x 0.56 x 0.625 / 0.7 are exactly two; at 0.84 exactly three.
    [(0.55, 2), (0.56, 2), (0.57, 3), (0.84, 3), (0.85, None)],
)
def test_replicas_at_the_bounds_of_the_busiest_hour(busy: float, needed: int | None) -> None:
    saving = kinds_of(_queued(busy=busy)).get("larger-batches")

    replicas = saving and saving.proposal and saving.proposal.settings["min_replicas"]
    assert replicas == needed


@pytest.mark.parametrize(
    ("wait_us", "compute_us", "is_long"),
    [
        (20_000, 20_000, True),
        (19_999, 20_000, False),
        (1_000, 900, True),
        (999, 900, False),
    ],
)
def test_a_queue_is_long_from_the_time_of_an_execution(
    wait_us: int, compute_us: int, *, is_long: bool
) -> None:
    facts = _queued(busy=0.2, wait_us=wait_us, compute_us=compute_us)

    # The same dollars come from one of the two.
    assert set(kinds_of(facts)) == ({"larger-batches"} if is_long else {"fewer-replicas"})


def test_the_delay_that_fills_a_batch_is_no_queue() -> None:
    def delayed(us: int) -> DeploymentFacts:
        return _queued(busy=0.2, batching=Batching(max_queue_delay_us=us), max_batch_size=0)

    assert set(kinds_of(delayed(40_000))) == {"more-instances"}
    assert set(kinds_of(delayed(40_001))) == {"fewer-replicas"}


def test_full_batches_may_become_larger() -> None:
    limited = Batching(max_batch_size=2)
    facts = _queued(busy=0.6, items=1.6, batching=limited)
    saving = kinds_of(facts)["larger-batches"]

    assert saving.message.startswith("Allow larger batches and run 3 replicas instead of 4")
    assert evidence_of(saving)["New batch size"] == "6 of at most 8"
    assert saving.proposal is not None
    assert saving.proposal.settings["batching"]["max_batch_size"] == 0
    # Batches that are not full do not grow by a higher limit.
    assert "larger-batches" not in kinds_of(_queued(busy=0.6, items=1.59, batching=limited))
    assert "larger-batches" not in kinds_of(_queued(busy=0.6, items=8, batching=Batching()))


def test_a_batch_stays_within_the_size_that_was_chosen() -> None:
    chosen = Batching(is_dynamic=False, max_batch_size=3)
    saving = kinds_of(_queued(busy=0.5, batching=chosen))["larger-batches"]

    assert evidence_of(saving)["New batch size"] == "3 of at most 3"
    assert saving.proposal is not None
    assert saving.proposal.settings["batching"]["max_batch_size"] == 3


def test_as_many_instances_on_fewer_gpus() -> None:
    # 0.8 busy replicas need two at 70%; four instances are two on each. A second one adds 7,000 MiB.
    facts = _queued(busy=0.2, max_batch_size=0)
    saving = kinds_of(facts)["more-instances"]

    assert saving.message.startswith(
        "Run 2 instances on each GPU instead of 1 and run 2 replicas instead of 4: a request waits 60.0 ms"
    )
    assert saving.saving_amount == Decimal("1468.76")
    assert evidence_of(saving)["GPU memory needed"] == "15,000 of 24,576 MiB"
    assert evidence_of(saving)["New instances"] == "4 instead of 4"
    assert saving.proposal is not None
    assert saving.proposal.settings == {
        "instances_per_gpu": 2,
        "min_replicas": 2,
        "max_replicas": 2,
    }


@pytest.mark.parametrize(("memory_mib", "kinds"), [(15_000, {"more-instances"}), (14_999, set())])
def test_instances_need_their_memory(memory_mib: int, kinds: set[str]) -> None:
    facts = _queued(busy=0.2, max_batch_size=0, memory_mib=memory_mib)

    assert set(kinds_of(facts)) == kinds


@pytest.mark.parametrize(("memory_mib", "kinds"), [(8_000, {"larger-batches"}), (7_999, set())])
def test_batches_need_their_memory(memory_mib: int, kinds: set[str]) -> None:
    assert set(kinds_of(_queued(busy=0.6, memory_mib=memory_mib))) == kinds


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param({"file": None}, id="file not read"),
        pytest.param({"need": None}, id="memory not known"),
        pytest.param({"replica_amount": None}, id="no price"),
        pytest.param({"replicas": 1}, id="one replica: nothing is let go"),
        pytest.param({"busy": 0.9}, id="the gain is latency, no dollars"),
        pytest.param(
            {"spec": {"additional_models": ({"model": "b", "version": 1},)}},
            id="counters of one of several models",
        ),
    ],
)
def test_no_advice_where_a_fact_is_missing_or_no_dollars_follow(missing: dict[str, Any]) -> None:
    assert not kinds_of(_queued(**{"busy": 0.6, **missing}))


def test_a_server_that_counts_no_executions_has_no_queue() -> None:
    facts = _queued(busy=0.2)
    hours = [replace(hour, executions=0) for hour in facts.hours]

    assert set(kinds_of(replace(facts, hours=hours))) == {"fewer-replicas"}


def test_a_range_keeps_its_most_replicas_and_one_replica_in_production_is_a_high_risk() -> None:
    wide = _queued(busy=0.1, spec={"max_replicas": 6})
    saving = kinds_of(wide)["larger-batches"]

    assert saving.proposal is not None
    assert (saving.proposal.settings["min_replicas"], saving.risk) == (1, "high")
    assert saving.proposal.settings["max_replicas"] == 6
    assert saving.saving_amount == (PRICE * 3 * 730).quantize(Decimal("0.01"))
    assert kinds_of(replace(wide, is_production=False))["larger-batches"].risk == "medium"
