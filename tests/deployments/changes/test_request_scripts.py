"""Copy as Python, curl and YAML: the copied script requests exactly the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.live_server_helper import LiveServer

from deployments.changes.web import request_body
from deployments.changes.web.request_body import SETTINGS, FormSetting, Unreadable, applies
from deployments.models import ChangeRequest, ModelVersion
from portal.accounts import tokens
from portal.accounts.models import User
from portal.ui.definition_fields import is_switch
from tests import page as pages
from tests.deployments.world import World

URL = "/vision/deployments/new"
TYPED = {
    "share": "g5.xlarge|nvidia.com/gpu|1",
    "max_replicas": "3",
    "scaling_kind": "keda",
    "scaling_metric": "queue",
    "network_service_monitor": "on",
    "scaling_target": "7",
    "scaling_office_hours": "on",
    "scaling_office_hours_timezone": "Europe/Berlin",
    "batching_max_queue_delay_us": "500",
    "instances_per_gpu": "2",
    "warm_up": "on",
    "placement_capacity": "spot",
    "placement_spread_zones": "off",
    "network_access": "open",
    "env": 'APP_LOG=1\nAPP_NOTE=it\'s "quoted" $HOME `x` \\n',
    "comment": "For Friday's demo.\nJSON\nIt's cheap.",
}


@pytest.mark.django_db(transaction=True)
def test_the_copied_scripts_make_the_same_request_as_the_form(
    world: World, signed_in: Callable[[User], Client], live_server: LiveServer
) -> None:
    # A model that takes batches, so that a queue delay is valid.
    ModelVersion.objects.update(signature={"max_batch_size": 8})
    client = signed_in(world.member)
    issued = tokens.create(actor=world.member, name="notebook", days=1, scopes=["request"])
    token = issued.plain
    env = {**os.environ, "SLIPWAY_TOKEN": token}

    def page(name: str, go: str) -> str:
        typed = {
            **TYPED,
            "version": str(world.version1.pk),
            "cluster": str(world.cluster_id),
            "name": name,
            "go": go,
        }
        host = live_server.url.removeprefix("http://")
        return client.post(URL, typed, HTTP_HOST=host).content.decode()

    page("by-form", "submit")
    python = script(page("by-python", "check"), 1)
    run([sys.executable, "-c", python], env)
    curl = script(page("by-curl", "check"), 2)
    run(["sh", "-c", curl], env)

    made = {change.deployment.name: change for change in ChangeRequest.objects.all()}
    assert set(made) == {"by-form", "by-python", "by-curl"}
    for name in ("by-python", "by-curl"):
        assert facts(made[name]) == facts(made["by-form"])
    spec = facts(made["by-form"])["spec"]
    assert spec["scaling"]["metric"] == "queue"
    assert spec["scaling"]["office_hours"]["timezone"] == "Europe/Berlin"
    assert spec["env"]["APP_NOTE"] == 'it\'s "quoted" $HOME `x` \\n'


def script(text: str, number: int) -> str:
    return pages.page(text).part(f"snippet-{number}").verbatim


def run(command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def facts(change: ChangeRequest) -> dict[str, Any]:
    assert change.revision is not None
    return {
        "spec": change.revision.spec,
        "version": change.revision.version_id,
        "comment": change.comment.replace("\r\n", "\n"),
        "requester": change.requester_id,
        "cost": change.cost,
        "kind": change.kind,
    }


def test_what_was_left_alone_is_left_out_of_the_copy() -> None:
    data = {**request_body.DEFAULTS, "name": "street", "share": "g5.xlarge|nvidia.com/gpu|1"}

    spec = request_body.body_of(data)["spec"]

    assert spec == {
        "engine": "kserve-triton",
        "instance_type": "g5.xlarge",
        "gpu_resource": "nvidia.com/gpu",
        "gpus": 1,
        "min_replicas": 1,
        "max_replicas": 1,
        "cpu": "2",
        "memory": "8Gi",
        "env": {},
    }


def _texts(setting: FormSetting) -> st.SearchStrategy[str]:
    definition = setting.definition
    if is_switch(definition):
        return st.sampled_from(["on", "off"])
    if definition.is_list:
        return st.lists(st.integers(1, 64).map(str), max_size=3).map(", ".join)
    if definition.kind is int:
        return st.integers(0, 10**6).map(str)
    return st.from_regex(r"[a-z0-9:/.-]{0,12}", fullmatch=True)


@given(
    st.fixed_dictionaries(
        {name: _texts(one) for name, one in SETTINGS.items() if applies(one, request_body.DEFAULTS)}
    )
)
def test_form_to_yaml_and_back_loses_nothing(settings: dict[str, str]) -> None:
    data = {**request_body.DEFAULTS, "name": "street", "share": "g5.xlarge|nvidia.com/gpu|1"}
    data |= settings

    text = yaml.safe_dump(request_body.body_of(data))
    back = {**request_body.DEFAULTS, **request_body.fields_of(yaml.safe_load(text))}

    # A text that YAML reads as another kind comes back as its text.
    assert {name: back[name] for name in settings} == settings


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"spec": {"colour": "red"}}, 'no field "spec.colour"'),
        ({"spec": {"scaling": {"speed": 1}}}, 'no field "spec.scaling.speed"'),
        ({"spec": {"scalling": {"kind": "keda"}}}, 'Did you mean "spec.scaling"'),
        ({"spec": {"scaling": "keda"}}, "spec.scaling must be a mapping"),
        ({"colour": "red"}, 'no field "colour"'),
        ({"spec": {"env": ["A=1"]}}, "spec.env must map"),
        (["name"], "as a mapping"),
    ],
)
def test_a_field_that_no_request_has_is_named(body: Any, message: str) -> None:
    with pytest.raises(Unreadable, match=message):
        request_body.fields_of(body)
