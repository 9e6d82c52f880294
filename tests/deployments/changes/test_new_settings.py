"""The settings of a new deployment: off with a reason where the cluster lacks what they need."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from deployments.models import ChangeRequest, ModelVersion
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster, Node, Pod, Workload
from portal.accounts.models import User
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import Part, page

URL = "/vision/deployments/new"
PARTS = {"weights": 700, "activations": 2000, "runtime": 450}


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def can(*names: str) -> None:
    features = {name: Feature(name in ("kubernetes", *names)) for name in FEATURE_DESCRIPTIONS}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())


def shown(client: Client, world: World, **typed: str) -> Part:
    """The page as the browser gets it."""
    data = {
        "version": str(world.version1.pk),
        "cluster": str(world.cluster_id),
        "name": "street",
        "share": "g5.xlarge|nvidia.com/gpu|1",
        "network_access": "open",
        **typed,
    }
    return page(client.post(URL, data))


def test_what_the_cluster_lacks_is_off_and_says_why(world: World, client: Client) -> None:
    can("kserve")

    form = shown(client, world)

    assert form.field("scaling_kind", "keda").is_disabled
    assert "off: KEDA is not installed" in form.text
    assert form.field("network_strict_mtls").is_disabled
    assert "Off: Istio is not installed" in form.text
    assert not form.field("placement_spread_zones").is_disabled


def test_on_a_cluster_with_everything_nothing_is_off_for_want_of_it(
    world: World, client: Client
) -> None:
    can(*FEATURE_DESCRIPTIONS)

    form = shown(client, world, scaling_kind="keda")

    for field, value in (
        ("scaling_kind", "keda"),
        ("network_strict_mtls", ""),
        ("scaling_can_scale_to_zero", ""),
        ("scaling_target", ""),
    ):
        assert not form.field(field, value).is_disabled


def test_an_earlier_choice_that_became_unavailable_is_refused_not_dropped(
    world: World, client: Client
) -> None:
    can("kserve")

    form = shown(client, world, scaling_kind="keda", max_replicas="2", go="submit")

    assert "scaling.kind: KEDA is not installed" in form.text
    assert not ChangeRequest.objects.exists()


def test_a_switch_set_to_off_stays_off(world: World, client: Client) -> None:
    form = shown(client, world, placement_spread_zones="off", go="submit")

    assert form.text == ""
    change = ChangeRequest.objects.get()
    assert change.revision is not None
    assert change.revision.spec["placement"]["spread_zones"] is False
    assert change.revision.spec["batching"]["is_dynamic"] is True


def test_a_wrong_setting_shows_at_its_field_and_opens_its_group(
    world: World, client: Client
) -> None:
    form = shown(
        client,
        world,
        go="submit",
        batching_max_queue_delay_us="soon",
        instances_per_gpu="99",
    )

    batching = form.group("Batching")
    assert '"soon" is not a whole number' in batching.text
    assert batching.is_open


def test_the_side_follows_with_the_groups_that_depend_on_each_other(
    world: World, client: Client
) -> None:
    can(*FEATURE_DESCRIPTIONS)
    typed = {
        "version": str(world.version1.pk),
        "cluster": str(world.cluster_id),
        "scaling_kind": "keda",
        "scaling_office_hours": "on",
    }

    answer = page(client.post(URL, typed, **HTMX, HTTP_HX_TARGET="side"))

    assert not answer.is_whole_page
    assert answer.part("side").text
    swapped = answer.part("section-scaling")
    assert swapped.attributes["hx-swap-oob"] == "true"
    assert swapped.field("scaling_office_hours_timezone")
    assert "Requests waiting in the server" in swapped.text
    assert "Requests in flight" not in swapped.text


def test_the_share_is_ranked_for_the_stated_load_and_says_what_it_rests_on(
    world: World, client: Client
) -> None:
    ModelVersion.objects.update(signature={"vram_parts_mib": PARTS}, vram_estimate_mib=3152)

    text = shown(client, world, requests_per_second="50").text

    assert "recommended: cheapest with free capacity" in text
    assert "estimated from the file; not measured on a GPU yet." in text
    assert "Latency of this model is not measured yet" in text
    assert "$734" in text


def test_a_language_model_is_sized_by_its_load(world: World, client: Client) -> None:
    can(*FEATURE_DESCRIPTIONS)
    Node.objects.update(allocatable={"nvidia.com/gpu": "4"}, gpu_count=4)

    form = shown(
        client,
        world,
        engine="kserve-vllm",
        share="",
        llm_parameters_millions="8030",
        llm_max_model_len="8192",
        llm_max_num_seqs="16",
    )

    # 128 KiB a token by the rule makes the same cache as Llama's architecture.
    assert "KV cache" in form.text
    assert "rejected: has 24,576 MiB (90% usable), needs 33,504 MiB" in form.text
    assert form.field("share", "g5.xlarge|nvidia.com/gpu|2").is_chosen


def test_scale_to_zero_shows_the_cold_start_only_where_it_was_measured(
    world: World, client: Client
) -> None:
    can(*FEATURE_DESCRIPTIONS)
    typed = {
        "scaling_kind": "keda",
        "scaling_metric": "gateway-latency",
        "max_replicas": "2",
        "scaling_can_scale_to_zero": "on",
    }
    before = shown(client, world, **typed).text
    world.serving()
    workload = Workload.objects.get(name="detector-r1")
    for number, seconds in enumerate((40, 90, 42)):
        Pod.objects.create(
            cluster_id=world.cluster_id,
            workload=workload,
            namespace="vision",
            name=f"p{number}",
            uid=f"p{number}",
            created_at=world.clock.at,
            ready_at=world.clock.at + timedelta(seconds=seconds),
        )

    after = shown(client, world, **typed).text

    assert "Not known yet: this model has not been started." in before
    assert "about 42 s" in after
    assert "3 starts measured; the slowest took 90 s" in after
    # Without requests nothing runs and nothing costs.
    assert "$0" in after


@pytest.mark.parametrize(
    ("engine", "is_offered"), [("kserve-vllm", True), ("kserve-triton", False)]
)
def test_metrics_of_language_models_are_offered_for_them_alone(
    world: World, client: Client, engine: str, is_offered: bool
) -> None:
    can(*FEATURE_DESCRIPTIONS)

    form = shown(client, world, engine=engine, scaling_kind="keda", max_replicas="2")

    assert ("KV cache in use" in form.text) is is_offered
    assert ("Time to first token (p95)" in form.text) is is_offered
    assert "GPU utilisation" in form.text


def sent(form: Part, prefix: str) -> dict[str, str]:
    """The switches as a browser sends them: the hidden value, then the checkbox if it is checked and
    not disabled.
    """
    values: dict[str, str] = {}
    for part in form.all("input"):
        name, kind = part.attributes.get("name", ""), part.attributes.get("type")
        is_sent = kind == "hidden" or (
            kind == "checkbox" and part.is_chosen and not part.is_disabled
        )
        if name.startswith(prefix) and is_sent:
            values[name] = part.value
    return values


def test_a_switch_that_the_engine_does_not_use_keeps_its_default_for_the_next_engine(
    world: World, client: Client
) -> None:
    can("kserve")
    before = shown(client, world, engine="triton")
    switches = sent(before, "llm_")
    assert before.field("llm_prefix_caching").is_disabled

    after = shown(client, world, engine="kserve-sglang", **switches)

    assert switches["llm_prefix_caching"] == "on"
    assert switches["llm_enforce_eager"] == "off"
    assert after.field("llm_prefix_caching").is_chosen
    assert not after.field("llm_enforce_eager").is_chosen
