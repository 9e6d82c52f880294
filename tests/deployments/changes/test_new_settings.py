"""The settings of a new deployment: off with a reason where the cluster lacks what they need."""

from __future__ import annotations

import html
import re
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

URL = "/deployments/new"
PARTS = {"weights": 700, "activations": 2000, "runtime": 450}


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def can(*names: str) -> None:
    features = {name: Feature(name in ("kubernetes", *names)) for name in FEATURE_DESCRIPTIONS}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())


def shown(client: Client, world: World, step: str, **typed: str) -> str:
    """The step as the browser gets it, entities as people read them."""
    data = {
        "version": str(world.version1.pk),
        "cluster": str(world.cluster_id),
        "name": "street",
        "share": "g5.xlarge|nvidia.com/gpu|1",
        "network_access": "open",
        "at": step,
        **typed,
    }
    return html.unescape(client.post(URL, data).content.decode())


def control(page: str, field: str, value: str = "") -> str:
    """The tag of the input or option."""
    tags = re.findall(r"<(?:input|option|select)[^>]*>", page)
    named = [tag for tag in tags if f'name="{field}"' in tag and 'type="hidden"' not in tag]
    return next(tag for tag in named if not value or f'value="{value}"' in tag)


def test_what_the_cluster_lacks_is_off_and_says_why(world: World, client: Client) -> None:
    can("kserve")

    page = shown(client, world, "scaling")

    assert "disabled" in control(page, "scaling_kind", "keda")
    assert "off: KEDA is not installed" in page
    assert "disabled" in control(page, "network_strict_mtls")
    assert "Off: Istio is not installed" in page
    assert "disabled" not in control(page, "placement_spread_zones")


def test_on_a_cluster_with_everything_nothing_is_off_for_want_of_it(
    world: World, client: Client
) -> None:
    can(*FEATURE_DESCRIPTIONS)

    page = shown(client, world, "scaling", scaling_kind="keda")

    for field, value in (
        ("scaling_kind", "keda"),
        ("network_strict_mtls", ""),
        ("scaling_can_scale_to_zero", ""),
        ("scaling_target", ""),
    ):
        assert "disabled" not in control(page, field, value)


def test_an_earlier_choice_that_became_unavailable_is_refused_not_dropped(
    world: World, client: Client
) -> None:
    can("kserve")

    page = shown(client, world, "review", scaling_kind="keda", max_replicas="2", go="submit")

    assert "scaling.kind: KEDA is not installed" in page
    assert not ChangeRequest.objects.exists()


def test_a_switch_set_to_off_stays_off(world: World, client: Client) -> None:
    page = shown(client, world, "review", placement_spread_zones="off", go="submit")

    assert page == ""
    change = ChangeRequest.objects.get()
    assert change.revision is not None
    assert change.revision.spec["placement"]["spread_zones"] is False
    assert change.revision.spec["batching"]["is_dynamic"] is True


def test_a_wrong_setting_shows_at_its_field_and_opens_its_group(
    world: World, client: Client
) -> None:
    page = shown(
        client,
        world,
        "scaling",
        go="review",
        batching_max_queue_delay_us="soon",
        instances_per_gpu="99",
    )

    assert '"soon" is not a whole number' in page
    batching = page.split("<b>Batching</b>")[0].rsplit("<details", 1)[1]
    assert batching.startswith(" open")


def test_the_side_follows_with_the_groups_that_depend_on_each_other(
    world: World, client: Client
) -> None:
    can(*FEATURE_DESCRIPTIONS)
    typed = {
        "version": str(world.version1.pk),
        "cluster": str(world.cluster_id),
        "at": "scaling",
        "scaling_kind": "keda",
        "scaling_office_hours": "on",
    }

    answer = client.post(URL, typed, **HTMX, HTTP_HX_TARGET="side").content.decode()

    assert answer.lstrip().startswith("<aside")
    swapped = answer.split('id="autoscaling" hx-swap-oob="true"')[1]
    assert 'name="scaling_office_hours_timezone"' in swapped
    assert "Requests waiting in the server" in swapped
    assert "Requests in flight" not in swapped


def test_the_share_is_ranked_for_the_stated_load_and_says_what_it_rests_on(
    world: World, client: Client
) -> None:
    ModelVersion.objects.update(signature={"vram_parts_mib": PARTS}, vram_estimate_mib=3152)

    page = shown(client, world, "serving", requests_per_second="50")

    assert "recommended: cheapest with free capacity" in page
    assert "estimated from the file; not measured on a GPU yet." in page
    assert "Latency of this model is not measured yet" in page
    assert "$734.38" in page


def test_a_language_model_is_sized_by_its_load(world: World, client: Client) -> None:
    can(*FEATURE_DESCRIPTIONS)
    Node.objects.update(allocatable={"nvidia.com/gpu": "4"}, gpu_count=4)

    page = shown(
        client,
        world,
        "serving",
        engine="kserve-vllm",
        share="",
        llm_parameters_millions="8030",
        llm_max_model_len="8192",
        llm_max_num_seqs="16",
    )

    # 128 KiB a token by the rule makes the same cache as Llama's architecture.
    assert "KV cache" in page
    assert "rejected: has 24,576 MiB (90% usable), needs 33,504 MiB" in page
    assert "checked" in control(page, "share", "g5.xlarge|nvidia.com/gpu|2")


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
    before = shown(client, world, "scaling", **typed)
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

    after = shown(client, world, "scaling", **typed)

    assert "Not known yet: this model has not been started." in before
    assert "about 42 s" in after
    assert "3 starts measured; the slowest took 90 s" in after
    # Without requests nothing runs and nothing costs.
    assert "$0.00" in after


@pytest.mark.parametrize(
    ("engine", "is_offered"), [("kserve-vllm", True), ("kserve-triton", False)]
)
def test_metrics_of_language_models_are_offered_for_them_alone(
    world: World, client: Client, engine: str, is_offered: bool
) -> None:
    can(*FEATURE_DESCRIPTIONS)

    page = shown(client, world, "scaling", engine=engine, scaling_kind="keda", max_replicas="2")

    assert ("KV cache in use" in page) is is_offered
    assert ("Time to first token (p95)" in page) is is_offered
    assert "GPU utilisation" in page


def sent(page: str, prefix: str) -> dict[str, str]:
    """The switches as a browser sends them: the hidden value, then the checkbox if it is checked and
    not disabled.
    """
    values: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", page):
        name, kind = re.search(r'name="([^"]*)"', tag), re.search(r'type="([^"]*)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        if not (name and kind and value and name[1].startswith(prefix)):
            continue
        if kind[1] == "hidden" or (
            kind[1] == "checkbox" and "checked" in tag and "disabled" not in tag
        ):
            values[name[1]] = value[1]
    return values


def test_a_switch_that_the_engine_does_not_use_keeps_its_default_for_the_next_engine(
    world: World, client: Client
) -> None:
    can("kserve")
    before = shown(client, world, "serving", engine="triton")
    switches = sent(before, "llm_")
    assert "disabled" in control(before, "llm_prefix_caching")

    after = shown(client, world, "serving", engine="kserve-sglang", **switches)

    assert switches["llm_prefix_caching"] == "on"
    assert switches["llm_enforce_eager"] == "off"
    assert "checked" in control(after, "llm_prefix_caching")
    assert "checked" not in control(after, "llm_enforce_eager")
