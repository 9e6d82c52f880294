"""Each team's pods read its own models: one role for each, and a request proves what it reads."""

from __future__ import annotations

import os
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.models import ChangeRequest
from deployments.preflight.domain.checks import Check
from deployments.preflight.gateways import iam as preflight_iam
from deployments.preflight.services import preflight
from deployments.spec.domain import serving_spec
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.services import serving_policy
from fleet.models import Cluster
from portal.core.errors import Invalid
from tests.deployments.world import World

_ROLES = "arn:aws:iam::111122223333:role/models-{team}"
_VISION = "arn:aws:iam::111122223333:role/models-vision"
_BUCKET = "arn:aws:s3:::slipway-models"


def _get(resource: str) -> dict[str, Any]:
    return {"Action": "s3:GetObject", "Resource": f"{_BUCKET}/{resource}"}


def _list(prefix: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"Action": "s3:ListBucket", "Resource": _BUCKET}
    return {**made, "prefix": prefix} if prefix else made


_OWN = (_get("repositories/vision/*"), _list("repositories/vision/*"))


class Iam:
    """Says of each role what its policy allows: actions, resources with wildcards, s3:prefix."""

    def __init__(self, roles: dict[str, tuple[dict[str, Any], ...]]) -> None:
        self.roles = roles
        self.simulated: list[tuple[str, str, str]] = []

    def simulate_principal_policy(self, **request: Any) -> dict[str, Any]:
        (action,), (resource,) = request["ActionNames"], request["ResourceArns"]
        (context,) = request["ContextEntries"]
        (prefix,) = context["ContextKeyValues"]
        self.simulated.append((action, resource, prefix))
        is_allowed = any(
            role["Action"] == action
            and fnmatchcase(resource, role["Resource"])
            and fnmatchcase(prefix, role.get("prefix", "*"))
            for role in self.roles[request["PolicySourceArn"]]
        )
        decision = "allowed" if is_allowed else "implicitDeny"
        return {"EvaluationResults": [{"EvalDecision": decision}]}


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iam:
    settings.SLIPWAY_S3_ENDPOINT_URL = ""
    made = Iam({_VISION: _OWN})
    monkeypatch.setattr(preflight_iam, "_client", lambda: made)
    return made


def _access(world: World) -> Check:
    serving_policy.set_policy(
        actor=world.admin, cluster_id=world.cluster_id, serving=ServingPolicy(role_arn=_ROLES)
    )
    result = preflight.check(actor=world.member, draft=world.draft())
    return next(check for check in result.checks if check.name == "Access")


def test_a_role_of_the_team_alone_is_proven(world: World, iam: Iam) -> None:
    access = _access(world)

    prefix = world.version1.repository_prefix
    assert prefix.startswith("repositories/vision/")
    assert (access.ok, access.is_refusal) == (True, False)
    assert (
        access.detail
        == f"{_VISION} can list and get objects in {prefix} and nothing of other teams."
    )
    tried = {prefix for _, _, prefix in iam.simulated}
    assert tried == {prefix, "repositories/nlp/", "repositories/some-later-team/"}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ((_get("*"), _list()), "s3:GetObject and s3:ListBucket on repositories/nlp/"),
        ((*_OWN, _get("repositories/nlp/*")), "s3:GetObject on repositories/nlp/"),
        ((*_OWN, _list()), "s3:ListBucket on repositories/nlp/"),
        (
            (_get("repositories/[!n]*"), _list("repositories/vision/*")),
            "s3:GetObject on repositories/some-later-team/",
        ),
    ],
)
def test_a_role_that_reads_another_teams_models_refuses_the_request(
    world: World, iam: Iam, policy: tuple[dict[str, Any], ...], message: str
) -> None:
    iam.roles[_VISION] = policy

    access = _access(world)

    assert access.is_refusal
    assert access.detail == f"{_VISION} is allowed {message}, which belongs to another team."
    assert access.fix.startswith("Limit it to repositories/vision/*")
    with pytest.raises(Invalid, match="which belongs to another team"):
        requests.request_deploy(actor=world.member, draft=world.draft())
    assert not ChangeRequest.objects.exists()


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ((_list("repositories/vision/*"),), "s3:GetObject"),
        ((_get("repositories/vision/*"),), "s3:ListBucket"),
        (
            (_get("repositories/vision-lab/*"), _list("repositories/vision-lab/*")),
            "s3:GetObject and",
        ),
    ],
)
def test_a_role_that_cannot_read_its_own_prefix_is_a_warning_as_the_bucket_policy_may_allow_it(
    world: World, iam: Iam, policy: tuple[dict[str, Any], ...], refused: str
) -> None:
    iam.roles[_VISION] = policy

    access = _access(world)

    assert (access.ok, access.is_refusal) == (False, False)
    assert f"{_VISION} is not allowed {refused}" in access.detail


def test_an_account_that_the_spec_names_is_proven_as_well(world: World, iam: Iam) -> None:
    other = "arn:aws:iam::111122223333:role/everything"
    iam.roles[other] = (_get("*"), _list())
    world.cluster.objects["ServiceAccount", "vision", "readers"] = {
        "metadata": {"annotations": {"eks.amazonaws.com/role-arn": other}}
    }
    draft = world.draft(storage=serving_spec.Storage(service_account="readers"))

    with pytest.raises(Invalid, match=f"{other} is allowed"):
        requests.request_deploy(actor=world.member, draft=draft)


def test_each_team_gets_the_role_of_its_name(world: World, iam: Iam) -> None:
    _access(world)

    world.serving()

    account = world.cluster.objects["ServiceAccount", "vision", "slipway-models"]
    assert account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"] == _VISION


@pytest.mark.parametrize(
    "role", ["arn:aws:iam::111122223333:role/models", "arn:aws:iam::1:role/{team}", "{team}"]
)
def test_one_role_for_all_teams_cannot_be_set(world: World, role: str) -> None:
    with pytest.raises(Invalid) as raised:
        serving_policy.set_policy(
            actor=world.admin, cluster_id=world.cluster_id, serving=ServingPolicy(role_arn=role)
        )

    assert "one role for each team" in raised.value.fields["role_arn"]
    assert Cluster.objects.get().serving == {}


@pytest.mark.parametrize(("role", "is_taken"), [(_VISION, False), (_ROLES, True), ("", True)])
def test_the_setting_names_one_role_for_each_team_too(role: str, is_taken: bool) -> None:
    environment = {**os.environ, "SLIPWAY_SERVING_ROLE_ARN": role}

    done = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"],
        cwd=Path(__file__).parents[3],
        env={**environment, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode == 0) is is_taken
    assert ("names one role for all teams" in done.stderr) is not is_taken
