"""The adviser with real rows: this cluster, this team's limits, what was measured before."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from deployments.models import ModelVersion
from deployments.preflight.services import gpu_advice
from deployments.preflight.services.gpu_advice import Load
from deployments.sizing.domain.ranking import Advice, RejectionReason
from fleet.models import Cluster, InstancePrice, Workload
from portal.accounts.models import Team, User
from portal.core.errors import Forbidden, Invalid, NotFound
from tests.deployments.world import World

PARTS = {"weights": 700, "activations": 2000, "runtime": 450}


@pytest.fixture(autouse=True)
def read_files(world: World) -> None:
    """Both versions' files were read."""
    ModelVersion.objects.update(signature={"vram_parts_mib": PARTS}, vram_estimate_mib=3152)


def advice(world: World, version: ModelVersion, load: Load | None = None) -> Advice:
    return gpu_advice.advise(
        actor=world.member,
        version_id=version.pk,
        cluster_id=world.cluster_id,
        load=load or Load(),
    )


def test_what_the_cluster_has_is_ranked_and_what_it_lacks_says_so(world: World) -> None:
    InstancePrice.objects.create(
        instance_type="g6.xlarge",
        region="us-east-1",
        usd_per_hour_amount=Decimal("0.8048"),
        gpu_name="l4",
        gpu_count=1,
        gpu_memory_mib=22888,
        vcpu=4,
        memory_gib=16,
        allocatable_cpu="3920m",
        allocatable_memory="14162Mi",
        source="catalogue",
        valid_from=world.clock.at.date(),
    )

    ranking = advice(world, world.version1)

    assert [(c.offer.title, c.month_amount) for c in ranking.ranked] == [
        ("1 \N{MULTIPLICATION SIGN} A10G", Decimal("734.38"))
    ]
    assert ranking.ranked[0].headroom_percent == 87
    (elsewhere,) = ranking.rejected
    assert elsewhere.offer.title == "1 \N{MULTIPLICATION SIGN} L4"
    assert elsewhere.refusals[0].reason is RejectionReason.NOT_HERE
    assert elsewhere.refusals[0].message == "eks-test has no g6.xlarge node"


def test_the_memory_of_an_earlier_version_replaces_the_estimate(world: World) -> None:
    world.serving()
    Workload.objects.filter(name="detector-r1").update(gpu_memory_peak_mib=1900)

    own, next_one = advice(world, world.version1), advice(world, world.version2)

    for result in (own, next_one):
        assert result.need.is_measured
        assert result.need.mib_on(1) == 1904
        assert result.need.basis.startswith("measured on a GPU that served detector:1")


def test_a_later_version_says_nothing_of_an_earlier_one(world: World) -> None:
    ModelVersion.objects.filter(pk=world.version1.pk).update(number=3)
    world.serving()
    Workload.objects.filter(name="detector-r1").update(gpu_memory_peak_mib=1900)

    assert not advice(world, world.version2).need.is_measured


def test_a_namesake_on_another_cluster_is_no_measurement_of_this_version(world: World) -> None:
    world.serving()
    here = Workload.objects.get(name="detector-r1")
    Workload.objects.create(
        cluster=Cluster.objects.create(name="other", kind="eks", created_at=world.clock.at),
        team=here.team,
        namespace=here.namespace,
        name=here.name,
        created_at=world.clock.at,
        gpu_memory_peak_mib=20_000,
    )

    assert not advice(world, world.version1).need.is_measured


def test_quota_and_budget_count_what_the_team_runs_already(world: World) -> None:
    world.serving()
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=1, monthly_budget_amount=Decimal(1000))

    ranking = advice(world, world.version1)

    assert ranking.ranked == ()
    assert [refusal.message for refusal in ranking.rejected[0].refusals] == [
        "needs 1 GPU, 0 left in the team's quota"
    ]


@pytest.mark.parametrize("is_binding", [True, False])
def test_sizing_and_the_check_of_a_request_agree_on_the_budget(
    world: World, *, is_binding: bool
) -> None:
    world.serving()
    Team.objects.filter(pk=world.team.pk).update(
        monthly_budget_amount=Decimal(1000), is_budget_binding=is_binding
    )
    over = "$734 a month, $266 left in the team's budget for a full month"

    ranking = advice(world, world.version1)

    if is_binding:
        (refusal,) = ranking.rejected[0].refusals
        assert (ranking.ranked, refusal.message) == ((), f"{over}; the budget is binding")
    else:
        assert ranking.ranked[0].explanation.endswith(f"; {over}; an approver decides")
        assert ranking.ranked[0].is_recommended


def test_a_version_that_nothing_is_known_of_is_not_guessed(world: World) -> None:
    ModelVersion.objects.update(signature={}, vram_estimate_mib=None)

    with pytest.raises(Invalid) as raised:
        advice(world, world.version1)
    assert "detector:1 was not read" in raised.value.message


@pytest.mark.parametrize(("who", "refused"), [("stranger", NotFound), ("viewer", Forbidden)])
def test_only_members_are_advised(world: World, who: str, refused: type[Exception]) -> None:
    actor: User = getattr(world, who)

    with pytest.raises(refused):
        gpu_advice.advise(
            actor=actor, version_id=world.version1.pk, cluster_id=world.cluster_id, load=Load()
        )


def test_the_api_advises_on_a_language_model(world: World) -> None:
    client = Client()
    client.force_login(world.member)
    body = {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "language_model": {
            "parameters_millions": 3000,
            "context_tokens": 4096,
            "concurrency": 4,
            "attention": {"layers": 28, "kv_heads": 8, "head_size": 128},
        },
    }

    answer = client.post("/api/v1/sizing", body, content_type="application/json").json()

    assert [(term["name"], term["mib"]) for term in answer["terms"]] == [
        ("Weights", 5723),
        ("KV cache", 1792),
        ("Workspace", 512),
        ("Runtime", 1024),
    ]
    assert answer["needed_mib"] == 9056
    assert [(c["gpus"], c["usd_per_month"]) for c in answer["ranked"]] == [(1, "734.38")]
    assert answer["ranked"][0]["is_recommended"]


def test_the_api_names_the_field_that_makes_no_sense(world: World) -> None:
    client = Client()
    client.force_login(world.member)
    body = {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "language_model": {"parameters_millions": 3000, "memory_percent": 200},
    }

    answer = client.post("/api/v1/sizing", body, content_type="application/json")

    assert answer.status_code == 422
    assert "language_model.memory_percent" in answer.content.decode()
