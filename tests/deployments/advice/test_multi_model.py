"""Which small deployments one Triton can serve, and what is advised on them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from deployments.advice.domain import catalogue
from deployments.advice.domain.advice import Saving
from deployments.advice.domain.facts import DeploymentFacts, SpotPrice
from deployments.sizing.domain.ranking import ShareKind
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.advice.known_facts import evidence_of, facts_of, hours_of, offer

COST = Decimal("734.38")


def _small(
    name: str, *, busy: float = 0.1, requests: int = 100, mib: int = 8000, **fields: Any
) -> DeploymentFacts:
    values = {"cluster": "eks", "environment": "production", "version": 3, **fields}
    return facts_of(
        hours_of(busy=busy, requests=lambda _: requests),
        mib=mib,
        name=f"vision/{name}",
        model=values.pop("model", name),
        **values,
    )


def _advice(*team: DeploymentFacts, declined: tuple[int, ...] = ()) -> dict[str, dict[str, Saving]]:
    """By deployment; keys are 0, 1, …"""
    advice = catalogue.advise_team(dict(enumerate(team)), declined=declined)
    return {facts.name: advice[key] for key, facts in enumerate(team)}


def test_the_model_with_fewer_requests_moves_to_the_other_one() -> None:
    ocr, intent = _small("ocr", requests=50), _small("intent", requests=60)
    advice = _advice(ocr, intent)

    assert advice["vision/intent"] == {}, "it stays"
    [(kind, saving)] = advice["vision/ocr"].items()
    assert kind == "multi-model"
    assert saving.message == (
        "Serve ocr:3 from vision/intent and then stop vision/ocr: the models of 2 deployments fit one Triton."
    )
    assert (saving.saving_amount, saving.cost_amount) == (COST, COST)
    assert saving.formula == (
        "cost of vision/ocr in the last 168 h ÷ 168 \N{MULTIPLICATION SIGN} 730 h, from when it is stopped"
    )
    evidence = evidence_of(saving)
    assert evidence["Models together"] == "intent:3, ocr:3"
    assert evidence["GPU memory needed"] == "16,000 of 24,576 MiB"
    assert evidence["Busiest hour together"] == "20%"
    assert evidence["GPU utilisation, 7 days"] == "10%"
    assert saving.risk == "high"
    assert "/v2/models/ocr at the address of vision/intent" in saving.risk_reason
    assert saving.proposal is not None
    assert (saving.proposal.kind, saving.proposal.deployment_id) == ("canary", 1)
    spec = ServingSpec.from_json({**intent.spec.to_json(), **saving.proposal.settings})
    assert [model.label for model in spec.additional_models] == ["ocr:3"]


@pytest.mark.parametrize(
    ("mib", "busy", "fits"),
    [
        (12_288, 0.1, True),
        pytest.param(12_289, 0.1, False, id="memory"),
        pytest.param(8_000, 0.35, True, id="70% together"),
        pytest.param(8_000, 0.36, False, id="time"),
        pytest.param(100, 0.4, False, id="not little used"),
    ],
)
def test_memory_and_time_of_all_are_within_one_share(mib: int, busy: float, *, fits: bool) -> None:
    team = [_small("ocr", mib=mib, busy=busy), _small("intent", mib=mib, busy=busy, requests=200)]

    assert ("multi-model" in _advice(*team)["vision/ocr"]) is fits


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"cluster": "other"}, id="cluster"),
        pytest.param({"environment": "staging"}, id="environment"),
        pytest.param({"spec": {"instance_type": "g4dn.xlarge"}}, id="GPU type"),
        pytest.param({"spec": {"engine": "triton"}}, id="engine"),
        pytest.param({"spec": {"network": {"access": "open"}}}, id="callers"),
        pytest.param({"spec": {"gpus": 2}}, id="two GPUs"),
        pytest.param({"replicas": 2}, id="two replicas"),
        pytest.param({"spec": {"max_replicas": 2}}, id="an autoscaler"),
        pytest.param({"model": "intent"}, id="the same model"),
        pytest.param({"model": ""}, id="model not known"),
        pytest.param({"need": None}, id="memory not known"),
        pytest.param({"memory_mib": 0}, id="memory of the share not known"),
        pytest.param({"is_served_elsewhere": True}, id="served there already"),
        pytest.param({"requests": 0, "busy": 0.0}, id="idle: it is stopped instead"),
    ],
)
def test_only_deployments_that_are_alike_and_known(other: dict[str, Any]) -> None:
    advice = _advice(_small("ocr", **other), _small("intent", requests=200))

    assert not any("multi-model" in kinds for kinds in advice.values())


def test_a_week_that_was_not_read_gives_none() -> None:
    ocr = _small("ocr")
    hours = [replace(h, observed_ms=0) if i > 326 else h for i, h in enumerate(ocr.hours)]
    intent = _small("intent", requests=200)

    assert "multi-model" not in _advice(replace(ocr, hours=hours), intent)["vision/ocr"]


def test_three_in_one_and_the_fourth_stays_alone() -> None:
    """Each change adds one model; together they fit, so that the dollars of both are there."""
    team = [_small(name, requests=n) for n, name in enumerate(("a", "b", "c", "d"), start=10)]
    advice = _advice(*team)

    assert {name: set(kinds) for name, kinds in advice.items()} == {
        "vision/a": set(),
        "vision/b": {"multi-model"},
        "vision/c": {"multi-model"},
        "vision/d": set(),
    }
    for name in ("vision/b", "vision/c"):
        proposal = advice[name]["multi-model"].proposal
        assert proposal is not None
        assert len(proposal.settings["additional_models"]) == 1


def test_one_that_serves_others_stays_and_takes_one_more() -> None:
    both = ({"model": "b", "version": 1},)
    advice = _advice(
        _small("ocr", spec={"additional_models": both}), _small("intent", requests=200)
    )

    assert advice["vision/ocr"] == {}
    proposal = advice["vision/intent"]["multi-model"].proposal
    assert proposal is not None
    models = proposal.settings["additional_models"]
    assert [(one["model"], one["version"]) for one in models] == [("b", 1), ("intent", 3)]


@pytest.mark.parametrize(
    ("spec", "moves"),
    [
        # KServe caches one model: it can't take another one, but leave its own.
        ({"storage": {"model_cache": "cluster"}}, "intent"),
        ({"scaling": {"kind": "knative"}}, None),
        # Golden requests warm up the first model only.
        ({"warm_up": True, "triton": {"warm_up": {"data": "golden"}}}, "ocr"),
    ],
)
def test_what_the_rules_of_a_spec_refuse_is_not_advised(
    spec: dict[str, Any], moves: str | None
) -> None:
    intent = _small("intent", requests=200, spec=spec)
    moved = [
        name for name, kinds in _advice(_small("ocr"), intent).items() if "multi-model" in kinds
    ]

    assert moved == ([f"vision/{moves}"] if moves else [])


def test_the_host_gives_up_what_would_take_the_room_away() -> None:
    mig = offer(ShareKind.MIG, gpu_resource="nvidia.com/mig-3g.20gb", memory_mib=20480)
    spot = SpotPrice(usd_per_hour_amount=Decimal("0.9"), source="AWS")
    host = _small("intent", requests=200, offers=(mig,), spot=spot, is_production=False)
    alone = dict(catalogue.advise_deployment(host))
    advice = _advice(_small("ocr"), host)

    assert set(alone) == {"mig-slice", "spot"}
    assert set(advice["vision/intent"]) == {"spot"}
    assert set(advice["vision/ocr"]) == {"multi-model"}


def test_slices_that_save_more_than_one_triton_are_advised_instead() -> None:
    mig = offer(
        ShareKind.MIG,
        gpu_resource="nvidia.com/mig-3g.20gb",
        memory_mib=20480,
        usd_per_hour_amount=Decimal("0.5"),
    )
    # Two slices save 2 x 0.506 an hour, one GPU less saves 1.006.
    team = [_small("ocr", offers=(mig,)), _small("intent", offers=(mig,), requests=200)]

    assert [set(kinds) for kinds in _advice(*team).values()] == [{"mig-slice"}, {"mig-slice"}]
    dearer = replace(mig, usd_per_hour_amount=Decimal("0.504"))
    team = [_small("ocr", offers=(dearer,)), _small("intent", offers=(dearer,), requests=200)]
    assert [set(kinds) for kinds in _advice(*team).values()] == [
        {"mig-slice", "multi-model"},
        set(),
    ]


def test_a_declined_move_takes_nothing_from_the_host() -> None:
    mig = offer(ShareKind.MIG, gpu_resource="nvidia.com/mig-3g.20gb", memory_mib=20480)
    host = _small("intent", requests=200, offers=(mig,))

    assert set(_advice(_small("ocr"), host, declined=(0,))["vision/intent"]) == {"mig-slice"}
