"""A new deployment is one page: five open fields, the rest folded with its values in words, and clones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from deployments.models import ChangeRequest, ModelVersion
from deployments.sizing.selectors import measurements
from deployments.spec.domain import replicas, serving_spec
from deployments.spec.domain.scaling import Scaling
from fleet.models import Cluster, InstancePrice, Node
from portal.accounts.models import User
from portal.core import clock
from tests.capabilities import offering
from tests.deployments.changes.test_new_deployment import URL, check, fields_of, send
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import Part, page

SIDE = {**HTMX, "HTTP_HX_TARGET": "side"}
PARTS = {"weights": 700, "activations": 2000, "runtime": 450}
FIVE = ["version", "name", "environment", "requests_per_second", "network_access"]


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def form_in(answer: Any) -> Part:
    return page(answer).part("new-deployment")


def open_fields(form: Part) -> list[str]:
    """The names of the fields that are seen before anything is unfolded, each once."""
    return list(dict.fromkeys(_open_fields(form)))


def _open_fields(part: Part) -> Iterator[str]:
    is_closed = part.tag == "details" and not part.is_open
    for child in part.children:
        if not isinstance(child, Part) or "hidden" in child.attributes:
            continue
        if is_closed and child.tag != "summary":
            continue
        is_field = child.tag in ("input", "select", "textarea")
        if is_field and child.attributes.get("type") != "hidden":
            yield child.attributes["name"]
        yield from _open_fields(child)


def open_sections(form: Part) -> list[str]:
    return [
        next(section.all("b")).text
        for section in form.all("details")
        if section.attributes.get("class") == "fold" and section.is_open
    ]


def spec_of_request() -> dict[str, Any]:
    revision = ChangeRequest.objects.get().revision
    assert revision is not None
    return revision.spec


def further_cluster(name: str, instance_type: str, usd: str, *, memory_mib: int) -> Cluster:
    """A cluster with one node of one GPU, which has a price."""
    cluster = Cluster.objects.create(
        name=name,
        kind="eks",
        gateway_url=f"http://{name}.example",
        capabilities=offering("kserve-triton", "triton"),
        created_at=clock.now(),
    )
    node = Node.objects.filter(instance_type="g5.xlarge")[0]
    labels = {
        "node.kubernetes.io/instance-type": instance_type,
        "nvidia.com/gpu.product": "NVIDIA-L4",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": str(memory_mib),
    }
    node.pk, node.cluster, node.name, node.uid = None, cluster, name, name
    node.instance_type, node.labels, node.gpu_memory_mib = instance_type, labels, memory_mib
    node.gpu_product = "NVIDIA-L4"
    node.save()
    if not InstancePrice.objects.filter(instance_type=instance_type).exists():
        price = InstancePrice.objects.get(instance_type="g5.xlarge")
        price.pk, price.instance_type, price.gpu_name = None, instance_type, "l4"
        price.usd_per_hour_amount, price.gpu_memory_mib = usd, memory_mib
        price.save()
    return cluster


def test_exactly_five_fields_are_open(world: World, client: Client) -> None:
    empty = form_in(client.get(URL))
    chosen = form_in(client.get(f"{URL}?version={world.version1.pk}"))

    assert open_fields(empty) == FIVE
    assert open_fields(chosen) == FIVE
    assert open_sections(empty) == open_sections(chosen) == []


def test_a_team_with_many_versions_opens_no_further_field(world: World, client: Client) -> None:
    ModelVersion.objects.bulk_create(
        ModelVersion(
            model=world.version1.model,
            number=number,
            state=world.version1.state,
            filename="m.onnx",
            declared_size_bytes=1,
            created_by=world.member,
            created_at=clock.now(),
        )
        for number in range(3, 60)
    )

    form = form_in(client.get(URL))

    assert open_fields(form) == FIVE
    assert "59 are ready, the newest 20 are listed" in form.text


def test_five_typed_fields_make_a_request(world: World, client: Client) -> None:
    """Fields that nobody typed keep the value that the page showed, or the default."""
    page_shown = client.get(URL)
    typed = {
        "version": str(world.version1.pk),
        "name": "street",
        "environment": "staging",
        "requests_per_second": "50",
        "network_access": "open",
    }

    answer = send(client, page_shown, **typed)

    change = ChangeRequest.objects.get()
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert change.revision is not None
    assert change.revision.version == world.version1
    assert change.deployment is not None
    assert (change.deployment.name, change.deployment.environment) == ("street", "staging")
    assert change.deployment.cluster_id == world.cluster_id
    expected = world.draft(scaling=Scaling(kind="fixed")).spec.to_json()
    assert {**change.revision.spec, "image": ""} == {**expected, "image": ""}
    assert expected["instance_type"] == "g5.xlarge"
    assert (expected["min_replicas"], expected["max_replicas"]) == (1, 1)


def test_replicas_follow_the_traffic_until_somebody_types_them(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ModelVersion.objects.update(signature={"vram_parts_mib": PARTS}, vram_estimate_mib=3152)
    monkeypatch.setattr(measurements, "gpu_us_per_inference", lambda _version: 20_000)
    first = client.get(f"{URL}?version={world.version1.pk}")

    many = check(client, first, requests_per_second="100", network_access="open")
    few = check(client, many, requests_per_second="30")
    typed = check(client, few, min_replicas="2", max_replicas="2")
    later = check(client, typed, requests_per_second="100")

    def typed_in(answer: Any) -> tuple[str, str]:
        return fields_of(answer)["min_replicas"], fields_of(answer)["max_replicas"]

    assert [typed_in(answer) for answer in (first, many, few, typed, later)] == [
        ("1", "1"),
        ("3", "3"),
        ("1", "1"),
        ("2", "2"),
        ("2", "2"),
    ]
    reason = "3 replicas: 20.0 ms of GPU time per request, measured, each at most 70% busy."
    assert reason in page(many).part("field-traffic").text
    send(client, many)
    assert (spec_of_request()["min_replicas"], spec_of_request()["max_replicas"]) == (3, 3)


@pytest.mark.parametrize("traffic", ["many", "-1", "1.5", "1" * 10])
def test_traffic_that_is_no_number_is_said_at_its_field(
    world: World, client: Client, traffic: str
) -> None:
    first = client.get(f"{URL}?version={world.version1.pk}")

    answer = send(client, first, network_access="open", requests_per_second=traffic)

    assert answer.status_code == 422
    field = page(answer).part("field-traffic")
    assert "Enter a whole number, for example 50." in field.text
    assert field.field("requests_per_second").value == traffic
    assert not ChangeRequest.objects.exists()


def test_the_first_cluster_with_a_gpu_that_fits_is_chosen(world: World, client: Client) -> None:
    ModelVersion.objects.update(
        signature={"vram_parts_mib": {**PARTS, "weights": 30_000}}, vram_estimate_mib=32_450
    )
    Cluster.objects.update(is_reachable=True)
    further_cluster("zz-small", "g4dn.xlarge", "0.526", memory_mib=16_384)
    large = further_cluster("zz-wide", "g6e.xlarge", "1.861", memory_mib=46_068)
    Cluster.objects.update(is_reachable=True)

    answer = client.get(f"{URL}?version={world.version1.pk}")

    sent = fields_of(answer)
    assert sent["cluster"] == str(large.pk)
    assert sent["share"] == "g6e.xlarge|nvidia.com/gpu|1"
    summary = next(page(answer).group("GPU and cluster").all("summary")).text
    assert summary.endswith("L4 (g6e.xlarge) on zz-wide · chosen for you")


def test_the_cheapest_gpu_that_fits_is_chosen_and_stays_changeable(
    world: World, client: Client
) -> None:
    ModelVersion.objects.update(signature={"vram_parts_mib": PARTS}, vram_estimate_mib=3152)
    further_cluster("unused", "g6.xlarge", "0.8048", memory_mib=23_034)
    Node.objects.filter(instance_type="g6.xlarge").update(cluster_id=world.cluster_id)
    first = client.get(f"{URL}?version={world.version1.pk}")
    assert fields_of(first)["share"] == "g6.xlarge|nvidia.com/gpu|1"

    changed = check(client, first, share="g5.xlarge|nvidia.com/gpu|1", network_access="open")
    later = check(client, changed, version=str(world.version2.pk), requests_per_second="9")

    summary = next(page(later).group("GPU and cluster").all("summary")).text
    assert summary == "GPU and cluster 1 \N{MULTIPLICATION SIGN} A10G (g5.xlarge) on eks-test"
    send(client, later)
    assert spec_of_request()["instance_type"] == "g5.xlarge"


@pytest.mark.parametrize(
    ("typed", "section", "message"),
    [
        ({"min_replicas": "3", "max_replicas": "2"}, "Scaling", "Use at least min_replicas (3)"),
        ({"cpu": "lots"}, "Resources and network", "Use"),
        ({"batching_max_queue_delay_us": "soon"}, "Batching and Triton", "not a whole number"),
        ({"placement_tolerations": "?"}, "Placement", "key"),
        ({"additional_model_1": "nothing:4"}, "Multi-model serving", "nothing:4"),
        ({"share": "p5.48xlarge|nvidia.com/gpu|8"}, "GPU and cluster", "no longer offered"),
        ({"engine": "kserve-vllm"}, "Engine", "kserve-vllm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_value_in_a_folded_section_opens_it_alone(
    world: World, client: Client, typed: dict[str, str], section: str, message: str
) -> None:
    first = client.get(f"{URL}?version={world.version1.pk}")

    answer = send(client, first, network_access="open", **typed)

    assert answer.status_code == 422
    form = form_in(answer)
    assert open_sections(form) == [section]
    assert message in form.group(section).text
    inputs = form.group(section).all("input", "select", "textarea", "div")
    assert any(part.attributes.get("aria-invalid") == "true" for part in inputs)
    # A GPU that is not offered is no row of the table.
    kept = {name: value for name, value in typed.items() if name != "share"}
    assert {name: fields_of(answer)[name] for name in kept} == kept
    assert not ChangeRequest.objects.exists()


def test_a_change_swaps_the_parts_with_their_errors(world: World, client: Client) -> None:
    typed = {**fields_of(client.get(f"{URL}?version={world.version1.pk}")), "cpu": "lots"}

    answer = page(client.post(URL, typed, **SIDE))

    assert not answer.is_whole_page
    swapped = answer.part("section-resources")
    assert swapped.attributes["hx-swap-oob"] == "true"
    assert swapped.is_open
    assert "1 to fix" in next(swapped.all("summary")).text
    assert not answer.part("section-scaling").is_open
    assert not answer.fields("version")
    assert not answer.fields("environment")


def test_before_a_version_is_chosen_nothing_is_called_wrong(world: World, client: Client) -> None:
    typed = {**fields_of(client.get(URL)), "requests_per_second": "20"}

    answer = page(client.post(URL, typed, **SIDE))

    assert [part for part in answer.all("span") if part.attributes.get("class") == "err"] == []
    assert "Choose a version." in answer.part("side").text


def test_a_chosen_version_brings_its_name_until_somebody_types_one(
    world: World, client: Client
) -> None:
    first = fields_of(client.get(URL))
    chosen = page(client.post(URL, {**first, "version": str(world.version1.pk)}, **SIDE))
    own = page(
        client.post(URL, {**first, "name": "own", "version": str(world.version1.pk)}, **SIDE)
    )

    assert chosen.field("name").value == "detector"
    assert own.field("name").value == "own"


def test_enter_in_a_field_checks_and_sends_nothing(world: World, client: Client) -> None:
    form = form_in(client.get(f"{URL}?version={world.version1.pk}"))

    first_button = next(form.all("button"))

    assert (first_button.attributes["name"], first_button.value) == ("go", "check")


def test_a_clone_has_exactly_the_cloned_values(world: World, client: Client) -> None:
    source = world.serving(
        memory="4Gi",
        min_replicas=2,
        max_replicas=3,
        warm_up=True,
        env={"APP_LOG": "1"},
        environment="staging",
    )
    head = page(client.get("/vision/deployments/detector"))
    assert head.links["Clone"] == f"{URL}?from=detector"

    answer = client.get(head.links["Clone"])
    send(client, answer)

    assert "Copied from detector." in page(answer).text
    assert open_fields(form_in(answer)) == FIVE
    clone = ChangeRequest.objects.exclude(deployment=source).get()
    assert clone.revision is not None
    assert source.stable_revision is not None
    assert clone.deployment is not None
    assert clone.revision.spec == source.stable_revision.spec
    assert clone.revision.version == source.stable_revision.version
    assert (clone.deployment.name, clone.deployment.environment) == ("detector-2", "staging")
    assert clone.deployment.cluster_id == source.cluster_id


def test_a_clone_has_the_replicas_approved_since(world: World, client: Client) -> None:
    source = world.serving()
    assert source.stable_revision is not None
    spec = serving_spec.read_stored(source.stable_revision.spec)
    scaled = replicas.with_replicas(spec, min_replicas=3, max_replicas=3)
    source.scale = replicas.scale_of(scaled, number=1)
    source.save()

    answer = client.get(f"{URL}?from=detector")

    sent = fields_of(answer)
    assert (sent["name"], sent["min_replicas"], sent["max_replicas"]) == ("detector-2", "3", "3")
    summary = next(page(answer).group("Scaling").all("summary")).text
    assert summary == "Scaling fixed at 3 replicas · 9 settings at their defaults"


def test_settings_that_only_the_api_has_are_named_in_a_clone(world: World, client: Client) -> None:
    source = world.serving()
    assert source.stable_revision is not None
    spec = source.stable_revision.spec
    extra = [{"model": f"m{number}", "version": 1} for number in range(4)]
    source.stable_revision.spec = {**spec, "additional_models": extra}
    source.stable_revision.save()

    shown = page(client.get(f"{URL}?from=detector"))

    assert "Only the API can set all settings of detector." in shown.text
    assert shown.field("version").value == str(world.version1.pk)
    assert shown.field("name").value == "detector-2"


def test_nobody_clones_what_they_cannot_see(
    world: World, client: Client, signed_in: Callable[[User], Client]
) -> None:
    world.serving()

    assert client.get(f"{URL}?from=nothing").status_code == 404
    assert signed_in(world.stranger).get(f"{URL}?from=detector").status_code == 404
    viewer = signed_in(world.viewer)
    assert "Clone" not in page(viewer.get("/vision/deployments/detector")).links


def test_yaml_and_back_keeps_the_traffic(world: World, client: Client) -> None:
    first = client.get(f"{URL}?version={world.version1.pk}")
    as_yaml = client.post(URL, {**fields_of(first), "requests_per_second": "40", "view": "yaml"})

    shown = fields_of(as_yaml)
    back = client.post(URL, {**shown, "yaml": shown["yaml"].replace("&#x27;", "'"), "view": "form"})

    assert fields_of(back)["requests_per_second"] == "40"
    assert fields_of(back)["share"] == "g5.xlarge|nvidia.com/gpu|1"
