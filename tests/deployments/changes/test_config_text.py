"""config.pbtxt beside the fields of a new deployment: each follows the other, also without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.changes.web import config_text, request_body
from deployments.models import ChangeRequest, ModelVersion
from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain.model_settings import ModelSettings
from portal.accounts.models import User
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import page

URL = "/vision/deployments/new"
PARTIAL = {**HTMX, "HTTP_HX_TARGET": "side"}


SIGNATURE = Signature(
    (Tensor("image", "FP32", (-1, 3, -1, -1)), Tensor("start", "INT32", (-1, 1))),
    (Tensor("class", "FP32", (-1, 10)),),
    max_batch_size=32,
)


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    ModelVersion.objects.filter(pk=world.version1.pk).update(signature=SIGNATURE.to_json())
    return signed_in(world.member)


def typed(world: World, **changes: str) -> dict[str, str]:
    return {
        "version": str(world.version1.pk),
        "cluster": str(world.cluster_id),
        "name": "street",
        "engine": "triton",
        "share": "g5.xlarge|nvidia.com/gpu|1",
        "network_access": "open",
        **changes,
    }


def rendered(world: World) -> str:
    return triton_config.render(model=world.version1.model.name, signature=SIGNATURE)


def edited(world: World, old: str, new: str, **changes: str) -> dict[str, str]:
    """The form with its text changed since it was shown."""
    text = rendered(world)
    assert old in text
    shown = config_text.digest(text)
    return typed(world, config_pbtxt=text.replace(old, new), config_shown=shown, **changes)


def value_of(answer: Any, field: str) -> str:
    """As the browser would send it; of a select, the chosen option."""
    controls = page(answer).all("input", "textarea", "select")
    (control,) = (item for item in controls if item.attributes.get("name") == field)
    if control.tag == "textarea":
        return "".join(str(child) for child in control.children).strip()
    if control.tag == "input":
        return control.attributes.get("value", "")
    chosen = (item for item in control.all("option") if "selected" in item.attributes)
    return next(chosen).attributes["value"]


def test_the_text_shows_what_the_fields_say(world: World, client: Client) -> None:
    answer = client.post(
        URL, typed(world, batching_max_queue_delay_us="750", instances_per_gpu="2")
    )

    text = value_of(answer, "config_pbtxt")
    assert "dynamic_batching { max_queue_delay_microseconds: 750 }" in text.splitlines()
    assert "instance_group { kind: KIND_GPU count: 2 }" in text.splitlines()


@pytest.mark.parametrize("headers", [{}, PARTIAL])
def test_the_fields_show_what_the_text_says(
    world: World, client: Client, headers: dict[str, Any]
) -> None:
    new = "dynamic_batching { max_queue_delay_microseconds: 900 priority_levels: 2 default_priority_level: 1 }"

    answer = client.post(URL, edited(world, "dynamic_batching { }", new), **headers)

    assert answer.status_code == 200
    assert value_of(answer, "batching_max_queue_delay_us") == "900"
    assert value_of(answer, "triton_queue_priority_levels") == "2"
    assert new in value_of(answer, "config_pbtxt")


def test_a_text_that_is_wrong_stays_with_its_line_and_nothing_is_sent(
    world: World, client: Client
) -> None:
    body = edited(world, "dynamic_batching { }", "dynamic_batchin { }", go="submit")

    answer = client.post(URL, body)

    assert answer.status_code == 422
    shown = page(answer)
    assert shown.group("Batching and Triton").is_open
    assert value_of(answer, "config_pbtxt") == body["config_pbtxt"].strip()
    line = body["config_pbtxt"].split("dynamic_batchin")[0].count("\n") + 1
    assert f"Line {line}" in shown.text
    assert 'Did you mean "dynamic_batching"?' in shown.text
    assert not ChangeRequest.objects.exists()


def test_a_request_takes_an_edited_text_along(world: World, client: Client) -> None:
    body = edited(world, "kind: KIND_GPU count: 1", "kind: KIND_GPU count: 3", go="submit")

    client.post(URL, body)

    revision = ChangeRequest.objects.get().revision
    assert revision is not None
    assert revision.spec["instances_per_gpu"] == 3


def test_what_the_text_no_longer_says_has_its_default_again(world: World, client: Client) -> None:
    before = {"batching_max_queue_delay_us": "750", "warm_up": "on", "triton_decoupled": "off"}
    text = value_of(client.post(URL, typed(world, **before)), "config_pbtxt")

    answer = client.post(
        URL,
        typed(world, **before, config_pbtxt=rendered(world), config_shown=config_text.digest(text)),
    )

    assert value_of(answer, "batching_max_queue_delay_us") == "0"
    assert value_of(answer, "config_pbtxt") == rendered(world).strip()


def test_fields_that_are_wrong_are_named_beside_the_text(world: World, client: Client) -> None:
    body = typed(world, triton_queue_priority_levels="2")

    answer = client.post(URL, body, **HTMX, HTTP_HX_TARGET="side")

    assert page(answer).part("config-problems").text == "Default priority: Use 1 to 2."


def test_a_text_that_waits_for_its_fields_does_not_set_them_back(
    world: World, client: Client
) -> None:
    first = client.post(URL, typed(world, triton_queue_priority_levels="2"))
    kept = {name: value_of(first, name) for name in ("config_pbtxt", "config_shown")}

    answer = client.post(
        URL,
        typed(
            world,
            triton_queue_priority_levels="2",
            triton_queue_default_priority_level="1",
            **kept,
        ),
    )

    assert value_of(answer, "triton_queue_priority_levels") == "2"
    line = "dynamic_batching { priority_levels: 2 default_priority_level: 1 }"
    assert line in value_of(answer, "config_pbtxt").splitlines()


def test_a_refused_text_is_read_again_once_it_is_fixed(world: World, client: Client) -> None:
    wrong = edited(world, "count: 1", "count: 99")
    first = client.post(URL, wrong)
    fixed = value_of(first, "config_pbtxt").replace("count: 99", "count: 2")

    answer = client.post(
        URL, typed(world, config_pbtxt=fixed, config_shown=value_of(first, "config_shown"))
    )

    assert first.status_code == 422
    assert value_of(answer, "instances_per_gpu") == "2"


def test_engines_without_config_pbtxt_have_no_text(world: World, client: Client) -> None:
    answer = client.post(URL, typed(world, engine="kserve-vllm"))

    assert "config_pbtxt" not in answer.content.decode()


def test_every_setting_of_the_text_is_a_field() -> None:
    tops = {"batching", "instances_per_gpu", "warm_up", "precision", "triton"}
    names = {
        name
        for name, setting in request_body.SETTINGS.items()
        if setting.path.partition(".")[0] in tops
    }

    assert set(config_text.fields_of(ModelSettings())) == names
    assert all(
        config_text.fields_of(ModelSettings())[name] == request_body.SETTINGS[name].default
        for name in names
    )
