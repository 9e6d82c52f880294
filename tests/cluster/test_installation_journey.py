"""A platform engineer installs the chart; then people of the company and callers of a model use it.

All roles of the chart run as processes, against a real API server with the permissions that `cluster_rbac` prints.
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import plain_http
from tests.cluster import kserve
from tests.cluster.agents import Agents, agents
from tests.cluster.installed_portal import HOST, InstalledPortal, installed
from tests.cluster.kubectl import Kubectl
from tests.cluster.portal_person import Person
from tests.cluster.running import PORTAL_ACCOUNT, PORTAL_NAMESPACE
from tests.cluster.test_chart import chart, database
from tests.contract import adder
from tests.portal.accounts.oidc.conftest import Server, process, server
from tests.waiting import wait_for

__all__ = ["agents", "chart", "database", "process", "server"]

pytestmark = pytest.mark.skipif(
    kserve.named_folder() is None, reason="the kinds of Envoy Gateway come with SLIPWAY_CRD_DIR"
)
_RULES = "groups=slipway-admins -> platform-admin; groups={team}-leads -> {team} lead; groups={team} -> {team} member"
_REVOKED_WITHIN_SECONDS = 5.0
_FEW_A_MINUTE = 5
_KUBECONFIG = "real"


@pytest.fixture
def team(admin: Kubectl) -> Iterator[str]:
    """Its slug, and its namespace, which is gone afterwards."""
    name = f"team-{secrets.token_hex(4)}"
    yield name
    admin.run("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def portal(
    chart: Any, tmp_path: Path, database: str, server: Server, s3_store: Any, settings: Any
) -> Iterator[InstalledPortal]:
    values = {
        "image": {"repository": "registry.example.org/slipway"},
        "host": HOST,
        "s3": {
            "bucket": settings.SLIPWAY_S3_BUCKET,
            "endpointUrl": settings.SLIPWAY_S3_ENDPOINT_URL,
        },
        "settings": {
            "SLIPWAY_OIDC": "lab",
            "SLIPWAY_OIDC_LAB_ISSUER": server.url,
            "SLIPWAY_OIDC_LAB_CLIENT_ID": "slipway",
            "SLIPWAY_OIDC_LAB_RULES": _RULES,
            "SLIPWAY_STEP_UP_MINUTES": "15",
            "SLIPWAY_CLUSTER_CREDENTIALS_DIR": "/tmp/credentials",
        },
        "secretSettings": [
            {"name": "SLIPWAY_OIDC_LAB_CLIENT_SECRET", "secretName": "oidc", "key": "secret"}
        ],
    }
    names = {
        "slipway": {
            "SLIPWAY_SECRET_KEY": base64.b64encode(secrets.token_bytes(48)).decode(),
            "SLIPWAY_DATABASE_URL": database,
            "SLIPWAY_REDIS_URL": os.environ["SLIPWAY_REDIS_URL"].rpartition("/")[0] + "/10",
        },
        "slipway-migrations": {"SLIPWAY_DATABASE_URL": database},
        "oidc": {"secret": "not a secret"},
    }
    folder = tmp_path / "portal"
    (folder / "credentials").mkdir(parents=True)
    shutil.copy(os.environ["SLIPWAY_TEST_KUBECONFIG"], folder / "credentials" / _KUBECONFIG)
    with installed(chart, folder, values=values, secrets=names) as running:
        yield running


def test_from_the_chart_to_a_caller_on_the_bill(
    portal: InstalledPortal,
    server: Server,
    agents: Agents,
    team: str,
    admin: Kubectl,
    journey: Callable[[str], None],
) -> None:
    cluster = _set_up(portal, server, agents, admin, team)
    wait_for("helm test", lambda: _passes(portal))
    ana, leo = _people(portal, server, team)

    version = ana.upload(f"{team}/adder", adder.onnx_file(2))
    spec = {"engine": "triton", "instance_type": "g5.xlarge", "cpu": "1", "memory": "2Gi"}
    change = ana.post(
        "deployments",
        {
            "version_id": version["id"],
            "cluster_id": cluster,
            "name": "adder",
            "environment": "staging",
            "spec": {**spec, "network": {"access": "keys"}},
        },
    )
    deployment = _approved_with_a_confirmation(portal, server, admin, leo, change)
    url = f"{deployment['url']}/v2/models/adder/infer"

    key = leo.post(
        f"deployments/{deployment['id']}/callers",
        {"caller": "billing", "contact": "ana@example.org"},
    )
    assert _status(url, None) == 401
    wait_for(portal.logs, lambda: _status(url, key["key"]) == 200)
    answered = 1 + sum(_status(url, key["key"]) == 200 for _ in range(20))
    assert answered == 21

    path = f"deployments/{deployment['id']}/callers/{key['id']}"
    leo.post(f"{path}/limit", {"requests_per_minute": _FEW_A_MINUTE})
    statuses: list[int] = []

    def is_limited() -> bool:
        statuses.append(_status(url, key["key"]))
        return statuses[-1] == 429

    wait_for(portal.logs, is_limited)
    answered += statuses.count(200)
    leo.post(f"{path}/revoke")
    revoked_at = time.monotonic()
    wait_for(portal.logs, lambda: _status(url, key["key"]) == 401)
    assert time.monotonic() - revoked_at < _REVOKED_WITHIN_SECONDS

    def billed() -> int:
        rows = leo.get(f"teams/{team}/caller-costs?deployment=adder")["results"]
        return sum(row["requests"] for row in rows if row["caller"] == "billing")

    def bill() -> str:
        rows = leo.get(f"teams/{team}/caller-costs?deployment=adder")
        proxies = admin.run("get", "pods", "--namespace=slipway-gateway", "--show-labels")
        read = "from fleet.models import CallerReading as R; print([*R.objects.values()])"
        problems = portal.manage("shell", "--verbosity=0", "-c", read)
        return f"{answered} answered, {rows}\n{problems}\n{proxies}\n{portal.logs()}"

    wait_for(bill, lambda: billed() == answered)
    journey(
        "the chart's portal: OIDC sign-in, roles by claims, upload, approval with a confirmation, "
        f"callers: 401 without a key, 200 with one, 429 over the limit, 401 once revoked, {answered} on the bill"
    )


def _grant(portal: InstalledPortal, admin: Kubectl, team: str) -> None:
    """As docs/install.md says: the command knows the gateway of the cluster that was connected."""
    account = f"{PORTAL_NAMESPACE}/{PORTAL_ACCOUNT}"
    printed = portal.manage("cluster_rbac", "--service-account", account, "--namespaces", team)
    names = (team, "slipway-gateway")
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names
    ]
    admin.apply([*namespaces, *yaml.safe_load_all(printed)])


def _set_up(
    portal: InstalledPortal, server: Server, agents: Agents, admin: Kubectl, team: str
) -> int:
    """A platform admin makes the team and connects the cluster; its id."""
    server.set_claims("ada", preferred_username="ada", groups=["slipway-admins"])
    ada = Person(portal, server, "ada")
    ada.sign_in()
    ada.post("teams", {"slug": team, "name": "Team", "quota_gpus": 2})
    cluster = ada.post(
        "clusters",
        {
            "name": "real",
            "kind": "kubeconfig",
            "gateway_url": f"http://127.0.0.1:{agents.gateway_port}",
            "kubeconfig_path": str(portal.folder / "credentials" / _KUBECONFIG),
        },
    )
    _grant(portal, admin, team)
    report = ada.post(f"clusters/{cluster['id']}/test")
    assert [row for row in report if row["ok"] is False] == [], report
    return int(cluster["id"])


def _people(portal: InstalledPortal, server: Server, team: str) -> tuple[Person, Person]:
    """A member and a lead, by what the provider says of them; they signed in there an hour ago."""
    server.set_mode("signed-in-for-an-hour")
    server.set_claims("ana", preferred_username="ana", groups=[team])
    server.set_claims("leo", preferred_username="leo", groups=[f"{team}-leads"])
    people = Person(portal, server, "ana"), Person(portal, server, "leo")
    for person, role in zip(people, ("member", "lead"), strict=True):
        person.sign_in()
        roles = {row["slug"]: row["role"] for row in person.get("me")["teams"]}
        assert roles == {team: role}
    return people


def _approved_with_a_confirmation(
    portal: InstalledPortal, server: Server, admin: Kubectl, leo: Person, change: dict[str, Any]
) -> dict[str, Any]:
    """The deployment, once it is ready."""
    path = f"changes/{change['id']}"
    decision = {"evidence_hash": leo.get(path)["evidence_hash"], "comment": "tried"}
    refused = leo.try_post(f"{path}/approve", decision)
    assert refused.status_code == 403, refused.text
    assert leo.get(path)["state"] == "submitted"
    server.set_mode("right")
    leo.confirm()
    leo.post(f"{path}/approve", decision)

    def ready() -> dict[str, Any] | None:
        deployment = dict(leo.get(f"deployments/{change['deployment_id']}"))
        return deployment if deployment["state"] == "ready" else None

    def how_it_stands() -> str:
        deployment = leo.get(f"deployments/{change['deployment_id']}")
        objects = admin.run(
            "get", "events,pods,deployments", f"--namespace={deployment['namespace']}"
        )
        return f"{deployment['state']}: {deployment['state_reason']}\n{objects}\n{portal.logs()}"

    return wait_for(how_it_stands, ready)


def _passes(portal: InstalledPortal) -> bool:
    """Not before beat and the workers have begun."""
    try:
        said = portal.helm_test()
    except subprocess.CalledProcessError:
        return False
    return "database: ok\nbroker: ok" in said


def _status(url: str, key: str | None) -> int:
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}
    headers = {} if key is None else {"x-api-key": key}
    return plain_http.client.post(url, json=body, headers=headers).status_code
