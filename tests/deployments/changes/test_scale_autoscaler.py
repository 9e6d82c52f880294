"""Which autoscaler a revision gets for a range of replicas, or when a canary names none."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.test import Client

from deployments.changes.services import recheck, requests
from deployments.models import ChangeRequest, Deployment
from deployments.spec.domain.scaling import Scaling
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.errors import Invalid
from tests.deployments import canaries
from tests.deployments.cluster_features import can
from tests.deployments.refusals import refused
from tests.deployments.world import World

FIXED_WORDS = "Fixed at 2 replicas: request queues can't be measured on this cluster"


def serving_where(world: World, *features: str) -> Deployment:
    def make() -> Deployment:
        can(*features)
        return world.serving()

    return world.play(f"serving where the cluster has {features}", make)


def scale(world: World, deployment: Deployment, least: int, most: int) -> ChangeRequest:
    return requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=least, max_replicas=most
    )


def autoscaler_checks(change: ChangeRequest) -> list[dict[str, Any]]:
    return [check for check in change.checks if check["name"] == "Scaling"]


def test_fixed_number_that_becomes_a_range_scales_by_queue(world: World) -> None:
    deployment = serving_where(world, "keda", "prometheus")

    change = scale(world, deployment, 2, 4)

    kept = change.scale
    assert (kept["min_replicas"], kept["max_replicas"]) == (2, 4)
    assert (kept["scaling"]["kind"], kept["scaling"]["metric"]) == ("keda", "queue")
    assert kept["network"]["service_monitor"] is True
    assert [check["detail"] for check in autoscaler_checks(change)] == [
        "KEDA uses nv_inference_pending_request_count, scraped by the deployment's ServiceMonitor."
    ]
    world.approved(change)
    world.reconcile_now(deployment)
    written = world.cluster.objects
    scaled = written["ScaledObject", "vision", "detector-r1"]["spec"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (2, 4)
    assert ("ServiceMonitor", "vision", "detector-r1") in written
    assert not [kind for kind, *_ in written if kind == "HorizontalPodAutoscaler"]
    assert deployment.stable_revision.spec["scaling"]["kind"] == "fixed", "the revision stays"


def test_range_after_a_range_keeps_the_autoscaler(world: World) -> None:
    deployment = serving_where(world, "keda", "prometheus")
    world.approved(scale(world, deployment, 1, 2))
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    again = scale(world, deployment, 1, 3)

    assert (again.scale["scaling"]["kind"], again.scale["max_replicas"]) == ("keda", 3)


def test_range_is_fixed_with_a_word_why_on_page_and_rest(world: World) -> None:
    deployment = serving_where(world, "keda")

    change = scale(world, deployment, 2, 4)

    kept = change.scale
    assert (kept["min_replicas"], kept["max_replicas"]) == (2, 2)
    assert kept["scaling"]["kind"] == "fixed"
    [check] = autoscaler_checks(change)
    assert check["detail"].startswith(FIXED_WORDS)
    assert "Prometheus operator is not installed" in check["detail"]
    assert check["fix"].endswith("request a canary that names an autoscaler.")
    client = Client()
    client.force_login(world.lead)
    assert FIXED_WORDS in unescape(client.get(f"/approvals/{change.pk}").content.decode())
    shown = client.get(f"/api/v1/changes/{change.pk}").json()
    assert shown["scale"] == kept
    assert FIXED_WORDS in " ".join(check["detail"] for check in shown["checks"])
    rechecked = recheck.repeat(actor=world.lead, change_id=change.pk)
    assert [check.detail for check in rechecked.checks if check.name == "Scaling"] == [
        check["detail"]
    ]


def test_range_that_stays_as_it_is_is_refused_with_why(world: World) -> None:
    deployment = serving_where(world)

    with refused(world, Invalid) as raised:
        scale(world, deployment, 1, 4)

    assert raised[0].fields["max_replicas"].startswith("Fixed at 1 replica: ")


def test_knative_never_takes_over_pods_that_run(world: World) -> None:
    deployment = serving_where(world, "kserve-knative")

    change = scale(world, deployment, 2, 4)

    assert change.scale["scaling"]["kind"] == "fixed"
    assert (
        "Knative scales only pods that it started: request a canary that names knative."
        in (autoscaler_checks(change)[0]["detail"])
    )


@pytest.mark.parametrize(
    ("features", "kind", "message"),
    [
        (("kserve-knative",), "knative", "Knative scales on requests in flight."),
        ((), "fixed", FIXED_WORDS),
    ],
)
def test_canary_with_a_spec_of_its_own_says_why_it_scales_so(
    world: World, features: tuple[str, ...], kind: str, message: str
) -> None:
    deployment = serving_where(world, *features)

    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=canaries.STEPS,
        spec=ServingSpec(
            engine="kserve-triton", instance_type="g5.xlarge", min_replicas=2, max_replicas=3
        ),
    )

    assert change.revision is not None
    assert change.revision.spec["scaling"]["kind"] == kind
    assert [check["detail"][: len(message)] for check in autoscaler_checks(change)] == [message]


def test_canary_that_names_its_autoscaler_gets_no_note_about_a_default(world: World) -> None:
    deployment = serving_where(world, "kserve-knative")

    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=canaries.STEPS,
        spec=ServingSpec(
            engine="kserve-triton",
            instance_type="g5.xlarge",
            max_replicas=3,
            scaling=Scaling(kind="knative"),
        ),
    )

    assert autoscaler_checks(change) == []
