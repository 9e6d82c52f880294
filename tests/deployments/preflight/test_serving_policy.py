"""What a cluster serves with: in manifests, in the API, on the page; and what preflight makes of
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from deployments.changes.selectors import evidence
from deployments.changes.services import requests
from deployments.manifests.domain.model_files import bucket_files
from deployments.manifests.selectors import rendered, rendering
from deployments.models import ChangeRequest, Revision
from deployments.preflight.services import preflight
from deployments.registry.domain.signatures import Signature
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors import capacity
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.node_pools import KarpenterRequirement, NodePool
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.services import serving_policy
from fleet.kube.domain.errors import ObjectInvalid, ObjectNotFound
from fleet.models import Cluster, InstancePrice, Node
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid
from tests.deployments.signed_in import signed_in
from tests.deployments.world import World

__all__ = ["signed_in"]
OWN = "registry.example/triton:26.07"
ROLE = "arn:aws:iam::111122223333:role/models-{team}"


def set_policy(world: World, **values: Any) -> None:
    serving_policy.set_policy(
        actor=world.admin, cluster_id=world.cluster_id, serving=ServingPolicy(**values)
    )


def applied(world: World, kind: str) -> dict[str, Any]:
    return next(item for key, item in world.cluster.objects.items() if key[0] == kind)


def check_named(world: World, name: str, **changed: Any) -> Any:
    result = preflight.check(actor=world.member, draft=world.draft(**changed))
    return next(check for check in result.checks if check.name == name)


def test_the_image_of_the_cluster_is_in_the_runtime_and_in_new_revisions(world: World) -> None:
    set_policy(world, triton_image=OWN)

    world.serving()

    runtime = applied(world, "ServingRuntime")
    assert runtime["metadata"]["namespace"] == "vision"
    assert runtime["spec"]["containers"][0]["image"] == OWN
    model = applied(world, "InferenceService")["spec"]["predictor"]["model"]
    assert (model["image"], model["runtime"]) == (OWN, runtime["metadata"]["name"])


def test_a_new_image_never_restarts_what_serves_and_voids_what_waits(world: World) -> None:
    deployment = world.serving()
    before = rendered.render_revision(Revision.objects.get()).to_yaml()
    waiting = requests.request_deploy(actor=world.member, draft=world.draft("other"))

    set_policy(world, triton_image=OWN)

    image = rendering.spec_of(Revision.objects.get(deployment=deployment)).image
    assert f"image: {image}" in before
    assert image != OWN
    assert evidence.digest(ChangeRequest.objects.get(pk=waiting.pk)) != waiting.evidence_hash


def test_keys_of_a_secret_replace_the_role(world: World, settings: Any) -> None:
    settings.SLIPWAY_SERVING_ROLE_ARN = ROLE
    set_policy(world, storage_secret="models-s3")

    world.serving(engine="triton")

    account = applied(world, "ServiceAccount")
    assert account["secrets"] == [{"name": "models-s3"}]
    assert "annotations" not in account["metadata"]
    pod = applied(world, "Deployment")["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["envFrom"] == [{"secretRef": {"name": "models-s3"}}]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"triton_image": "no image"}, "triton_image"),
        ({"role_arn": "me"}, "role_arn"),
        ({"prometheus_url": "http://user:word@host"}, "prometheus_url"),
        ({"role_arn": ROLE, "storage_secret": "keys"}, "storage_secret"),
    ],
)
def test_a_wrong_policy_is_refused_at_its_field_and_nothing_changes(
    world: World, values: dict[str, str], field: str
) -> None:
    with pytest.raises(Invalid) as raised:
        set_policy(world, **values)

    assert field in raised.value.fields
    assert Cluster.objects.get().serving == {}
    assert not AuditEvent.objects.filter(action="cluster.serving_changed").exists()


def test_only_a_platform_admin_sets_it(world: World) -> None:
    with pytest.raises(Forbidden):
        serving_policy.set_policy(
            actor=world.lead, cluster_id=world.cluster_id, serving=ServingPolicy(triton_image=OWN)
        )

    assert Cluster.objects.get().serving == {}


def test_the_page_and_the_api_set_the_same_thing(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(world.admin)
    page, address = (
        f"/admin/clusters/{world.cluster_id}/serving",
        f"/api/v1/clusters/{world.cluster_id}/serving",
    )

    wrong = client.post(page, {"role_arn": "me"})
    done = client.post(page, {"triton_image": OWN})
    by_page = client.get(address).json()
    by_api = client.put(address, {"vllm_image": "vllm/x:1"}, content_type="application/json")

    assert (wrong.status_code, done.status_code) == (422, 302)
    assert "arn:aws:iam::123456789012:role/slipway-models-{team}" in wrong.content.decode()
    assert by_page["triton_image"] == OWN
    assert by_api.json()["triton_image"] == ""
    assert Cluster.objects.get().serving == {"vllm_image": "vllm/x:1"}
    assert AuditEvent.objects.filter(action="cluster.serving_changed").count() == 2
    assert OWN not in client.get(page).content.decode()


def test_what_the_spec_names_has_to_be_there(world: World) -> None:
    named = {
        "placement": serving_spec.Placement(priority_class="serving-high"),
        "storage": serving_spec.Storage(service_account="readers"),
    }
    missing = check_named(world, "Names", **named)
    world.cluster.objects["PriorityClass", "", "serving-high"] = {"metadata": {}}
    world.cluster.objects["ServiceAccount", "vision", "readers"] = {"metadata": {}}

    there = check_named(world, "Names", **named)

    assert missing.is_refusal
    assert missing.detail == (
        "placement.priority_class: PriorityClass serving-high does not exist; "
        "storage.service_account: ServiceAccount readers does not exist."
    )
    assert there.ok is True


def test_models_over_several_nodes_need_the_runtime_of_kserve(world: World) -> None:
    llm = serving_spec.Llm(artifact="pvc://weights/m", nodes=2, tensor_parallel=1)

    missing = check_named(world, "Runtime", engine="kserve-vllm", llm=llm)
    comes_along = check_named(world, "Runtime")

    assert missing.is_refusal
    assert (
        "ClusterServingRuntime kserve-huggingfaceserver-multinode does not exist" in missing.detail
    )
    assert comes_along.detail.startswith(
        "slipway-triton is created automatically in vision, with nvcr.io/"
    )


def test_a_team_without_a_namespace_gets_its_dry_run_in_another(world: World) -> None:
    del world.cluster.objects["Namespace", "", "vision"]

    accepted = check_named(world, "Server dry-run")
    world.cluster.refuse["InferenceService"] = ObjectInvalid("unknown field spec.predicter")
    refused = check_named(world, "Server dry-run")
    world.cluster.refuse["InferenceService"] = ObjectNotFound("no InferenceService here")
    not_served = check_named(world, "Server dry-run")

    assert accepted.ok is True
    assert "Tried in namespace default" in accepted.detail
    assert (refused.ok, "spec.predicter" in refused.detail) == (False, True)
    assert not_served.ok is False
    assert world.cluster.writes == []


def with_pools(*pools: NodePool) -> None:
    features = {name: Feature(True) for name in ("kubernetes", "kserve", "karpenter")}
    raw = Capabilities(features=features, node_pools=pools).to_json()
    Cluster.objects.update(capabilities=raw)


def test_capacity_comes_from_free_gpus_or_from_a_node_pool_that_starts_one(world: World) -> None:
    g5 = (KarpenterRequirement("karpenter.k8s.aws/instance-family", "In", ("g5",)),)
    Node.objects.update(is_schedulable=False)

    with_pools(NodePool("gpu", g5))
    starts = check_named(world, "Capacity now")
    with_pools(NodePool("gpu", g5, gpu_limit=4, gpus=4))
    full = check_named(world, "Capacity now")

    assert starts.ok is True
    assert starts.detail.endswith(
        "Node pool gpu will start a g5.xlarge, which takes a few minutes."
    )
    assert full.ok is False
    assert "limited to 4 GPUs and has 4; 1 more are needed" in full.detail


def test_what_a_node_pool_may_start_is_offered_beside_what_is_there(world: World) -> None:
    price = InstancePrice.objects.get()
    for name, amount in (("g6.xlarge", "0.80"), ("g6.2xlarge", "0.97"), ("p9.xlarge", "9")):
        price.pk, price.instance_type, price.gpu_name = None, name, name.partition(".")[0]
        price.usd_per_hour_amount = Decimal(amount)
        price.save()
    with_pools(
        NodePool("gpu", (KarpenterRequirement("karpenter.k8s.aws/instance-family", "In", ("g6",)),))
    )

    shares = capacity.list_shares(cluster_id=world.cluster_id)

    assert [(share.instance_type, share.gpus, share.nodes, share.free_now) for share in shares] == [
        ("g6.xlarge", 1, 0, 0),
        ("g5.xlarge", 1, 4, 4),
    ]


def test_the_size_of_a_language_model_decides_memory_and_how_long_it_may_load(
    world: World,
) -> None:
    def made(millions: int) -> dict[str, Any]:
        llm = {"hugging_face_id": "org/model", "parameters_millions": millions}
        spec = {"engine": "kserve-vllm", "instance_type": "g5.xlarge", "llm": llm}
        return {"engine": "kserve-vllm", "llm": ServingSpec.from_json(spec).llm}

    assert check_named(world, "GPU memory", **made(0)).ok is None
    assert check_named(world, "GPU memory", **made(3000)).ok is True
    too_large = check_named(world, "GPU memory", **made(70_000))
    assert (too_large.ok, too_large.is_refusal) == (False, False)
    assert too_large.fix == (
        "Choose a GPU share with more memory or more GPUs or a shorter context."
    )


def test_weights_that_may_change_after_the_approval_are_reported_and_a_commit_pins_them(
    world: World,
) -> None:
    def of(name: str) -> Any:
        llm = serving_spec.Llm(hugging_face_id=name)
        return check_named(world, "Artifact", engine="kserve-vllm", llm=llm)

    loose, pinned = of("org/model"), of(f"org/model:{'ab' * 20}")

    assert "can change after approval" in loose.detail
    assert loose.fix == "Pin the commit: org/model:<40 hexadecimal digits>."
    assert (pinned.ok, pinned.fix) == (None, "")


def test_a_pinned_commit_reaches_kserve_and_triton() -> None:
    def spec(engine: str) -> serving_spec.ServingSpec:
        llm = {"hugging_face_id": f"org/model:{'ab' * 20}"}
        return ServingSpec.from_json({"engine": engine, "instance_type": "g5.xlarge", "llm": llm})

    version, triton = spec("kserve-vllm").llm, spec("triton-vllm")
    files = bucket_files.plan(
        team="t", model="m", number=1, prefix="p/", signature=Signature((), ()), spec=triton
    )
    check = next(body for key, body in files.objects.items() if key.endswith("model.json"))

    assert version is not None
    assert version.hugging_face_id.endswith(f":{'ab' * 20}")
    engine = json.loads(check)
    assert (engine["model"], engine["revision"]) == ("org/model", "ab" * 20)
