"""What holds for all advice, whatever the facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from deployments.advice.domain import catalogue
from deployments.advice.domain.facts import DeploymentFacts, SpotPrice
from deployments.sizing.domain.memory import FileModel
from deployments.sizing.domain.ranking import ShareKind
from deployments.spec.domain.serving_spec import Batching, ServingSpec
from tests.deployments.advice.known_facts import (
    START,
    WEEKS,
    facts_of,
    hours_of,
    kinds_of,
    offer,
)

_OFFERS = st.lists(
    st.builds(
        offer,
        st.sampled_from(list(ShareKind)),
        instance_type=st.sampled_from(["g5.xlarge", "g4dn.xlarge", "p4d.24xlarge"]),
        gpu_resource=st.sampled_from(
            ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"]
        ),
        gpus=st.sampled_from([1, 2]),
        memory_mib=st.integers(1000, 50_000),
        usd_per_hour_amount=st.none() | st.decimals(0, 3, places=6),
        free_replicas=st.none() | st.integers(0, 4),
    ),
    max_size=5,
)


@st.composite
def _any_facts(draw: st.DrawFn) -> DeploymentFacts:
    replicas = draw(st.integers(1, 4))
    busy = draw(st.floats(0, 1))
    price = draw(st.decimals(0, 5, places=6))
    quiet = draw(st.sets(st.integers(0, 167)))
    hours = hours_of(
        requests=lambda at: 0 if (at - START) // timedelta(hours=1) % 168 in quiet else 10,
        busy=busy,
        replicas=replicas,
        price=price,
    )
    wait_us, items = draw(st.sampled_from([0, 20_000, 90_000])), draw(st.sampled_from([10, 35]))
    hours = [
        replace(
            hour,
            served=hour.requests,
            queue_us=hour.requests * wait_us,
            compute_us=hour.requests * 20_000,
            inferences=hour.requests and items,
            executions=hour.requests,
        )
        for hour in hours
    ]
    gaps = draw(st.sets(st.integers(0, WEEKS - 1), max_size=draw(st.sampled_from([0, 3, 40]))))
    hours = [replace(h, observed_ms=0, busy_ms=0) if i in gaps else h for i, h in enumerate(hours)]
    return facts_of(
        hours,
        offers=tuple(draw(_OFFERS)),
        mib=draw(st.integers(100, 45_000)),
        replicas=replicas,
        spec={"batching": Batching(is_dynamic=draw(st.booleans()))},
        max_batch_size=draw(st.sampled_from([0, 2, 16])),
        file=draw(
            st.none() | st.just(FileModel(weights_mib=900, activations_mib=90, runtime_mib=9))
        ),
        is_production=draw(st.booleans()),
        replica_amount=draw(st.none() | st.just(price) | st.decimals(0, 5, places=6)),
        spot=draw(
            st.none()
            | st.builds(SpotPrice, usd_per_hour_amount=st.decimals(0, 2), source=st.just("x"))
        ),
        cold_start_seconds=draw(st.none() | st.integers(0, 900)),
        supports={name: draw(st.booleans()) for name in ("keda", "knative", "scale-to-zero")},
    )


@given(_any_facts())
def test_a_saving_is_never_negative_and_never_more_than_the_cost(facts: DeploymentFacts) -> None:
    for kind, saving in catalogue.advise_deployment(facts):
        assert 0 < saving.saving_amount <= saving.cost_amount, kind
        assert saving.cost_amount == facts.month_amount, kind


@given(_any_facts())
def test_what_is_proposed_is_a_spec_and_holds_the_model(facts: DeploymentFacts) -> None:
    for kind, saving in catalogue.advise_deployment(facts):
        assert saving.proposal is not None
        if saving.proposal.kind == "canary":
            spec = ServingSpec.from_json({**facts.spec.to_json(), **saving.proposal.settings})
            if kind in ("mig-slice", "shared-gpu", "cheaper-instance"):
                chosen = [
                    choice.offer.memory_mib
                    for choice in facts.choices
                    if choice.offer.gpu_resource == spec.gpu_resource
                    and (choice.offer.instance_type, choice.offer.gpus)
                    == (spec.instance_type, spec.gpus)
                ]
                assert facts.need is not None
                assert any(facts.need.has_room(gpus=spec.gpus, memory_mib=mib) for mib in chosen), (
                    kind
                )


@given(_any_facts())
def test_the_dollars_of_fewer_replicas_are_named_once(facts: DeploymentFacts) -> None:
    kinds = {"fewer-replicas", "larger-batches", "more-instances"}

    assert len(kinds & kinds_of(facts).keys()) <= 1


@given(_any_facts(), st.integers(9, 60))
def test_gaps_give_no_advice(facts: DeploymentFacts, missing: int) -> None:
    """More than 5% of the last week was not read."""
    hours = list(facts.hours)
    for index in range(WEEKS - missing, WEEKS):
        hours[index] = replace(hours[index], observed_ms=0, busy_ms=0)

    assert not kinds_of(replace(facts, hours=hours))


@given(_any_facts(), st.integers(1, 167))
def test_hours_that_the_ledger_lacks_give_no_advice(facts: DeploymentFacts, lost: int) -> None:
    hours = [hour for index, hour in enumerate(facts.hours) if index != WEEKS - lost]

    assert not kinds_of(replace(facts, hours=hours))
