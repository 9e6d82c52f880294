"""What teams may name is listed by the platform: images of every field, and priority classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.manifests.selectors import rendering
from deployments.models import ChangeRequest, Deployment, Pipeline
from deployments.pipelines.services import requests as pipeline_requests
from deployments.preflight.domain.checks import Check, DeployDraft
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.services import serving_policy
from fleet.models import Cluster
from portal.accounts.models import Team, User
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid
from tests import page as pages
from tests.deployments import pipelines_world
from tests.deployments.signed_in import signed_in
from tests.deployments.world import World

__all__ = ["signed_in"]

_MINER = "evil.example/miner"
_DEFAULT = (
    "nvcr.io/nvidia/tritonserver",
    "vllm/vllm-openai",
    "lmsysorg/sglang",
    "nvcr.io/nvidia/tensorrt-llm/release",
    "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx",
    "kserve/*",
)


def _set(world: World, **values: Any) -> None:
    serving_policy.set_policy(
        actor=world.admin, cluster_id=world.cluster_id, serving=ServingPolicy(**values)
    )


def _draft(world: World, **changed: Any) -> DeployDraft:
    data = {
        "engine": "kserve-triton",
        "instance_type": "g5.xlarge",
        "network": {"access": "open"},
        **changed,
    }
    return DeployDraft(world.version1.pk, world.cluster_id, "detector", ServingSpec.from_json(data))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"placement": {"priority_class": "high"}}, "placement.priority_class"),
        (
            {"engine": "kserve-vllm", "llm": {"artifact": f"oci://{_MINER}:1"}},
            "llm.artifact",
        ),
    ],
)
def test_what_is_not_listed_is_refused_at_its_field_and_nothing_is_made(
    world: World, changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=_draft(world, **changed))

    assert "is not an allowed" in raised.value.fields[field]
    assert "ask a platform admin to add it" in raised.value.fields[field]
    assert (ChangeRequest.objects.count(), Deployment.objects.count()) == (0, 0)
    assert not [call for call in world.cluster.calls if call[0] == "apply"]


@pytest.mark.parametrize(
    ("changed", "message"), [({"cpu": "5"}, "5 cores"), ({"memory": "14Gi"}, "14 Gi")]
)
def test_more_than_the_largest_node_has_is_refused(
    world: World, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(Invalid, match=message):
        requests.request_deploy(actor=world.member, draft=_draft(world, **changed))

    assert not ChangeRequest.objects.exists()


def _weights(world: World, image: str) -> Check | None:
    """The check of an image with weights."""
    llm = {"artifact": f"oci://{image}"}
    draft = _draft(world, engine="kserve-vllm", llm=llm)
    result = preflight.check(actor=world.member, draft=draft)
    return next((check for check in result.checks if check.name == "Image of weights"), None)


def test_what_a_cluster_lists_may_be_named_there_and_replaces_the_portals_own_list(
    world: World,
) -> None:
    _set(world, allowed_images=("registry.example/team/*",), priority_classes=("high",))
    world.cluster.objects["PriorityClass", "", "high"] = {"metadata": {}}
    listed = _draft(world, placement={"priority_class": "high"})

    change = requests.request_deploy(actor=world.member, draft=listed)
    own = _weights(world, "registry.example/team/weights:1")
    other = _weights(world, "kserve/weights:1")

    assert change.revision is not None
    assert change.revision.spec["placement"]["priority_class"] == "high"
    assert own is not None
    assert own.ok
    assert other is not None
    assert other.is_refusal
    assert other.detail.startswith("kserve/weights:1 is not an allowed image for eks-test.")


def test_taints_are_tolerated_as_the_cluster_lists_them(world: World) -> None:
    def asked(taints: str) -> DeployDraft:
        return _draft(world, placement={"tolerations": taints})

    with pytest.raises(Invalid) as unlisted:
        requests.request_deploy(actor=world.member, draft=asked("reserved=batch:NoSchedule"))
    _set(world, allowed_taints=("reserved=batch:NoSchedule",))
    with pytest.raises(Invalid) as wider:
        requests.request_deploy(
            actor=world.member, draft=asked("reserved:NoSchedule, reserved=batch:NoSchedule")
        )
    made = ChangeRequest.objects.count()
    change = requests.request_deploy(actor=world.member, draft=asked("reserved=batch:NoSchedule"))

    field = "placement.tolerations"
    assert "reserved=batch:NoSchedule may not be tolerated" in unlisted.value.fields[field]
    assert "Allowed: none; leave it empty." in unlisted.value.fields[field]
    assert wider.value.fields[field].startswith("reserved:NoSchedule may not be tolerated")
    assert made == 0
    assert change.revision is not None
    assert change.revision.spec["placement"]["tolerations"] == "reserved=batch:NoSchedule"


def test_taints_of_devices_are_tolerated_as_the_cluster_lists_them(world: World) -> None:
    draft = _draft(
        world, placement={"device_claims": True, "claim_tolerations": "example.com/slow:NoSchedule"}
    )
    with pytest.raises(Invalid) as unlisted:
        requests.request_deploy(actor=world.member, draft=draft)
    _set(world, allowed_taints=("example.com/slow:NoSchedule",))
    made = ChangeRequest.objects.count()
    change = requests.request_deploy(actor=world.member, draft=draft)

    field = "placement.claim_tolerations"
    assert "example.com/slow:NoSchedule may not be tolerated on eks-test" in str(
        unlisted.value.fields[field]
    )
    assert made == 0
    assert change.revision is not None
    assert change.revision.spec["placement"]["claim_tolerations"] == "example.com/slow:NoSchedule"


def test_the_portals_own_list_is_that_of_its_settings(world: World, settings: Any) -> None:
    assert rendering.policy_in_force(ServingPolicy()).allowed_images == _DEFAULT
    before = _weights(world, "kserve/weights:1")
    settings.SLIPWAY_ALLOWED_IMAGES = ""
    after = _weights(world, "kserve/weights:1")

    assert before is not None
    assert before.ok
    assert after is not None
    assert after.is_refusal
    assert after.detail.endswith("for eks-test. Allowed: none.")


def test_a_list_that_shrinks_refuses_what_waits(world: World) -> None:
    _set(world, priority_classes=("high",))
    world.cluster.objects["PriorityClass", "", "high"] = {"metadata": {}}
    draft = _draft(world, placement={"priority_class": "high"})
    change = requests.request_deploy(actor=world.member, draft=draft)

    _set(world, priority_classes=("low",))

    assert change.revision is not None
    result = preflight.check_revision(
        actor=world.member,
        deployment=deployment_of(change),
        version=world.version1,
        spec=rendering.spec_of(change.revision),
        number=1,
    )
    refused = [check.name for check in result.checks if check.is_refusal]
    assert refused == ["Priority class"]


def test_an_admin_sets_the_lists_on_the_page_and_by_the_api_and_both_are_audited(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(world.admin)
    page = f"/admin/clusters/{world.cluster_id}/serving"
    address = f"/api/v1/clusters/{world.cluster_id}/serving"

    typed = {"allowed_images": "kserve/*\n vllm/vllm-openai,kserve/* ", "priority_classes": "high"}
    done = client.post(page, typed)
    by_page = client.get(address).json()
    lists = {"allowed_images": ["a/b@sha256"], "priority_classes": []}
    by_api = client.put(address, lists, content_type="application/json")

    assert (done.status_code, by_api.status_code) == (302, 200)
    assert by_page["allowed_images"] == ["kserve/*", "vllm/vllm-openai"]
    assert by_page["priority_classes"] == ["high"]
    assert Cluster.objects.get().serving == {"allowed_images": ["a/b@sha256"]}
    assert AuditEvent.objects.filter(action="cluster.serving_changed").count() == 2
    assert pages.page(client.get(page)).field("allowed_images").value == "a/b@sha256"


@pytest.mark.parametrize(
    ("lists", "field"),
    [
        ({"allowed_images": ["*"]}, "allowed_images"),
        ({"allowed_images": ["kserve/x:1"]}, "allowed_images"),
        ({"priority_classes": ["High!"]}, "priority_classes"),
        ({"allowed_taints": ["reserved"]}, "allowed_taints"),
        ({"allowed_taints": ["*:NoSchedule"]}, "allowed_taints"),
        ({"egress_cidrs": ["10.0.0.1/8"]}, "egress_cidrs"),
        ({"control_plane_cidrs": ["anywhere"]}, "control_plane_cidrs"),
        ({"gateway_namespaces": ["Envoy!"]}, "gateway_namespaces"),
        ({"allowed_images": [f"a/b{n}" for n in range(101)]}, "allowed_images"),
    ],
)
def test_a_wrong_list_is_refused_at_its_field(
    world: World, signed_in: Callable[[User], Client], lists: dict[str, Any], field: str
) -> None:
    address = f"/api/v1/clusters/{world.cluster_id}/serving"

    answer = signed_in(world.admin).put(address, lists, content_type="application/json")

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert Cluster.objects.get().serving == {}


def test_a_lead_of_a_team_sets_no_list(world: World) -> None:
    with pytest.raises(Forbidden):
        serving_policy.set_policy(
            actor=world.lead,
            cluster_id=world.cluster_id,
            serving=ServingPolicy(allowed_images=("evil.example/*",)),
        )

    assert Cluster.objects.get().serving == {}


def test_a_pipeline_is_refused_where_pod_security_refuses_its_router(world: World) -> None:
    pipelines_world.members(world)
    Cluster.objects.update(serving={})

    with pytest.raises(Invalid, match="Pod Security restricted, which refuses KServe's router"):
        pipeline_requests.request_create(actor=world.member, draft=pipelines_world.draft(world))

    assert not Pipeline.objects.exists()
    Cluster.objects.update(serving={"pod_security": "baseline"})
    pipeline_requests.request_create(actor=world.member, draft=pipelines_world.draft(world))
    assert Pipeline.objects.count() == 1


def test_the_namespace_gets_the_limits_of_its_team_and_they_are_nobodys_to_approve(
    world: World,
) -> None:
    change = requests.request_deploy(actor=world.member, draft=_draft(world))
    Team.objects.filter(slug="vision").update(quota_gpus=3)

    world.approved(change)

    quota = world.cluster.objects["ResourceQuota", "vision", "slipway"]
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "3"
    assert ("LimitRange", "vision", "slipway") in world.cluster.objects
    for name in ("slipway-default-deny", "slipway-pipelines", "detector-r1"):
        assert ("NetworkPolicy", "vision", name) in world.cluster.objects
    namespace = world.cluster.objects["Namespace", "", "vision"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
