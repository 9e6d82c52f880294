"""A request that names a queue: it has to exist on the cluster, and Kueue too."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Llm, Placement, Scaling, ServingSpec
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster
from portal.core.definitions import Rejected
from portal.core.errors import Invalid
from tests.deployments import queues
from tests.deployments.refusals import refused
from tests.deployments.world import World


def checks(world: World, queue: str) -> dict[str, Check]:
    draft = world.draft(placement=Placement(queue=queue))
    result = preflight.check(actor=world.member, draft=draft)
    return {check.name: check for check in result.checks}


def test_a_queue_that_exists_says_how_many_wait(world: World) -> None:
    queues.install(world)

    check = checks(world, "serving")["Queue"]

    assert (check.ok, check.detail) == (
        True,
        "LocalQueue serving of vision admits pods from ClusterQueue gpus: 1 waits, 2 admitted.",
    )
    assert "Queue" not in checks(world, "")


def test_another_teams_queue_is_none(world: World) -> None:
    queues.install(world)

    with refused(world, Invalid) as raised:
        requests.request_deploy(
            actor=world.member, draft=world.draft(placement=Placement(queue="other"))
        )

    assert (
        raised[0]
        .fields["placement.queue"]
        .startswith("placement.queue: LocalQueue other of vision does not exist. There: serving.")
    )


def test_a_stopped_queue_is_no_refusal(world: World) -> None:
    queues.install(world)
    queues.put_queue(world, stopPolicy="Hold")

    check = checks(world, "serving")["Queue"]

    assert (check.ok, check.is_refusal) == (None, False)
    assert check.detail.endswith("admits nothing now: it is stopped (Hold)")


def test_why_its_cluster_queue_admits_nothing_is_said(world: World) -> None:
    queues.install(world)
    queues.put_queue(world)
    stored = world.cluster.objects["LocalQueue", queues.NAMESPACE, queues.QUEUE]
    stored["status"]["conditions"] = [
        queues.condition("Active", "False", "ClusterQueueIsInactive", queues.INACTIVE)
    ]
    queues.put_cluster_queue(world, stopPolicy="HoldAndDrain")

    check = checks(world, "serving")["Queue"]

    assert (check.ok, check.is_refusal) == (None, False)
    assert check.detail.endswith(
        f"admits nothing now: {queues.INACTIVE}; of ClusterQueue gpus: it is stopped (HoldAndDrain)"
    )


def test_a_cluster_without_kueue_refuses_it(world: World) -> None:
    found = Capabilities(features={"kubernetes": Feature(True), "kueue": Feature(False)})
    Cluster.objects.update(capabilities=found.to_json())

    with refused(world, Invalid) as raised:
        requests.request_deploy(
            actor=world.member, draft=world.draft(placement=Placement(queue="serving"))
        )

    assert "Kueue is not installed. It is needed for queues that admit pods by quota." in (
        raised[0].message
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            {"engine": "kserve-triton", "scaling": Scaling(kind="knative")},
            "Knative gives up on a revision that waits.",
        ),
        (
            {"engine": "kserve-vllm", "llm": Llm(artifact="pvc://models/a", nodes=2)},
            "Kueue admits the pods of KServe's server over several nodes one by one",
        ),
    ],
)
def test_what_cannot_wait_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(Rejected) as raised:
        ServingSpec(instance_type="g5.xlarge", placement=Placement(queue="serving"), **changed)

    assert raised.value.fields["placement.queue"].startswith(why)


def test_the_name_of_a_group_of_pods_has_to_fit_into_a_label(world: World) -> None:
    queues.install(world)
    llm = Llm(hugging_face_id="org/model", nodes=2)
    fields: dict[str, Any] = {
        "engine": "llm-inference-service",
        "llm": llm,
        "placement": Placement(queue="serving"),
    }

    def queue_checks(name: str) -> list[bool | None]:
        result = preflight.check(actor=world.member, draft=world.draft(name, **fields))
        return [check.ok for check in result.checks if check.name == "Queue"]

    assert queue_checks("a" * 25) == [True, True]
    assert queue_checks("a" * 26) == [False, True]
