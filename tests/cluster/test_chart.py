"""The Helm chart on a real API server with Pod Security *restricted* and a quota; its commands as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg import sql

from slipway_localcluster.controllers import free_ports
from tests import plain_http
from tests.cluster import build, helm
from tests.cluster.helm import Helm, Manifest
from tests.cluster.installed_portal import HOST, web_with_tls
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.cluster.waiting import wait_until

_MINIMAL: dict[str, Any] = {"image": {"repository": "registry.example.org/slipway"}, "host": HOST}
_HPA = {"kind": "hpa", "min": 2, "max": 5, "cpuPercent": 60}
_KEDA = {"kind": "keda", "min": 1, "max": 5, "messages": 20}
_APART = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "slipway"}},
                },
            }
        ]
    }
}
_FULL: dict[str, Any] = {
    **_MINIMAL,
    "image": {"repository": "registry.example.org/slipway", "digest": f"sha256:{'a' * 64}"},
    "settings": {"SLIPWAY_STEP_UP_MINUTES": "15"},
    "secretSettings": [{"name": "SLIPWAY_SMTP_URL", "secretName": "mail", "key": "url"}],
    "clusterCredentialsSecretName": "clusters",
    "trustedProxies": ["10.0.0.0/8"],
    "serviceAccount": {"name": "portal", "roleArn": "arn:aws:iam::111122223333:role/slipway"},
    "web": {"autoscaling": _HPA, "tlsSecretName": "web-tls"},
    "workers": {"delivery": {"autoscaling": _KEDA}, "telemetry": {"autoscaling": _HPA}},
    "keda": {
        "valkeyAddress": "valkey.example.org:6379",
        "passwordSecret": {"name": "v", "key": "p"},
    },
    "ingress": {"enabled": True, "annotations": {"alb.ingress.kubernetes.io/scheme": "internal"}},
    "httpRoute": {
        "enabled": True,
        "parentRefs": [{"name": "public", "namespace": "gateways", "sectionName": "https"}],
    },
    "metrics": {"dashboards": {"enabled": True}},
    "podLabels": {"cost-centre": "ml"},
    "podAnnotations": {"example.org/scan": "yes"},
    "priorityClassName": "system-cluster-critical",
    "affinity": _APART,
    "deploymentAnnotations": {"reloader.stakater.com/auto": "true"},
    "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/company/ca.crt"}],
    "extraVolumes": [{"name": "company-ca", "configMap": {"name": "company-ca"}}],
    "extraVolumeMounts": [{"name": "company-ca", "mountPath": "/company", "readOnly": True}],
    "networkPolicy": {
        "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "databaseCidrs": ["10.1.0.0/16"],
        "outsidePorts": [443, 6443, 6514],
    },
}
_VALUES = {"minimal": _MINIMAL, "full": _FULL}
_PODS = {"web": 2, "worker-delivery": 2, "worker-telemetry": 2, "worker-artifacts": 1, "beat": 1}
_PODS |= {"worker-notifications": 1, "watcher": 1}


@pytest.fixture
def chart(tmp_path: Path) -> Helm:
    made = build.cached(build.HELM)
    if made is None:
        pytest.skip("helm was not built")
    return Helm(made.program("helm"), tmp_path)


@pytest.fixture
def restricted(admin: Kubectl) -> Iterator[str]:
    """A namespace as platform teams make them."""
    name = f"portal-{uuid4().hex[:8]}"
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    hard = {
        "requests.cpu": "8",
        "requests.memory": "16Gi",
        "limits.cpu": "30",
        "limits.memory": "60Gi",
    }
    quota = {"name": "portal", "namespace": name}
    admin.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": quota,
                "spec": {"hard": hard},
            },
        ]
    )
    yield name
    admin.run("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("name", _VALUES)
def test_the_chart_is_linted_and_every_object_is_accepted(
    chart: Helm, restricted: str, admin: Kubectl, tmp_path: Path, name: str
) -> None:
    values = helm.write_values(tmp_path, **_VALUES[name])

    assert "0 chart(s) failed" in chart.lint(values)
    manifests = chart.render(restricted, values)
    for manifest in manifests:
        manifest["metadata"]["namespace"] = restricted
    admin.apply(manifests)

    kinds = {item["kind"] for item in manifests}
    expected = {
        "Deployment",
        "Job",
        "NetworkPolicy",
        "Pod",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }
    chosen = {"HorizontalPodAutoscaler", "ScaledObject", "TriggerAuthentication"}
    chosen |= {"Ingress", "HTTPRoute", "ConfigMap"}
    assert kinds == (expected | chosen if name == "full" else expected)
    assert "Secret" not in kinds


def test_prometheus_scrapes_it_with_a_token(chart: Helm, tmp_path: Path) -> None:
    """What the ServiceMonitor names is there: the Service's labels and port, and the Secret that web reads too."""
    monitor = {"enabled": True, "labels": {"release": "prometheus"}}
    metrics = {"tokenSecret": {"name": "scrape", "key": "token"}, "serviceMonitor": monitor}
    prometheus = [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]
    metrics["from"] = prometheus
    manifests = chart.render("portal", helm.write_values(tmp_path, **{**_FULL, "metrics": metrics}))

    (made,) = [item for item in manifests if item["kind"] == "ServiceMonitor"]
    (service,) = [item for item in manifests if item["kind"] == "Service"]
    (endpoint,) = made["spec"]["endpoints"]
    assert made["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert made["metadata"]["labels"]["release"] == "prometheus"
    assert endpoint == {
        "port": service["spec"]["ports"][0]["name"],
        "path": "/metrics",
        "interval": "30s",
        "authorization": {"credentials": {"name": "scrape", "key": "token"}},
        "scheme": "https",
        "tlsConfig": {"serverName": HOST},
    }
    tokens = {
        item["metadata"]["name"]: row["valueFrom"]["secretKeyRef"]
        for item in manifests
        if item["kind"] == "Deployment"
        for row in item["spec"]["template"]["spec"]["containers"][0]["env"]
        if row["name"] == "SLIPWAY_METRICS_TOKEN"
    }
    assert tokens == {"portal-web": {"name": "scrape", "key": "token"}}
    (policy,) = [
        item
        for item in manifests
        if item["metadata"]["name"] == "portal-web" and item["kind"] == "NetworkPolicy"
    ]
    assert [rule["from"] for rule in policy["spec"]["ingress"]][:2] == [
        _FULL["networkPolicy"]["from"],
        prometheus,
    ]


def test_a_service_monitor_without_a_token_is_refused(chart: Helm, tmp_path: Path) -> None:
    metrics = {"serviceMonitor": {"enabled": True}}
    values = helm.write_values(tmp_path, **_MINIMAL, metrics=metrics)

    with pytest.raises(helm.Refused, match="tokenSecret"):
        chart.render("portal", values)


def test_values_without_a_host_are_refused(chart: Helm, tmp_path: Path) -> None:
    values = helm.write_values(tmp_path, image={"repository": "x"})

    with pytest.raises(helm.Refused, match="host"):
        chart.render("portal", values)


def test_all_pods_are_admitted_and_scheduled_by_a_helm_install(
    chart: Helm,
    restricted: str,
    admin: Kubectl,
    tmp_path: Path,
    journey: Callable[[str], None],
) -> None:
    values = helm.write_values(tmp_path, **_MINIMAL)
    where = f"--namespace={restricted}"
    keys = ("SLIPWAY_SECRET_KEY", "SLIPWAY_DATABASE_URL", "SLIPWAY_REDIS_URL")
    names = {"slipway": keys, "slipway-migrations": keys[1:2]}
    admin.apply(
        [helm.secret(restricted, name, **dict.fromkeys(row, "x")) for name, row in names.items()]
    )
    with ready_node(admin, f"node-{restricted}"):
        # Nothing runs pods here, so the hook is applied by itself and not waited for.
        chart.run(
            "install", "portal", str(helm.CHART), where, "--values", str(values), "--no-hooks",
            "--kubeconfig", str(admin.kubeconfig),
        )  # fmt: skip
        admin.apply([_in(restricted, _migration(chart.render(restricted, values)))])

        def scheduled() -> dict[str, int]:
            counted: dict[str, int] = {}
            for pod in admin.get("pods", where)["items"]:
                if pod["spec"].get("nodeName"):
                    role = pod["metadata"]["labels"]["app.kubernetes.io/component"]
                    counted[role] = counted.get(role, 0) + 1
            return counted

        expected = {**_PODS, "migrate": 1}
        wait_until(
            lambda: scheduled() == expected, lambda: admin.run("get", "events,pods,quota", where)
        )
        events = admin.get("events", where)["items"]
    assert [row["message"] for row in events if "forbidden" in row["message"]] == []
    journey("the Helm chart is installed; Pod Security restricted and a quota admit its pods")


def _migration(manifests: list[Manifest]) -> Manifest:
    (job,) = [item for item in manifests if item["kind"] == "Job"]
    return job


def _in(namespace: str, manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


@pytest.fixture
def database() -> Iterator[str]:
    """The address of an empty database."""
    server = os.environ["SLIPWAY_DATABASE_URL"]
    name = f"chart_{uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        host = admin.info.host
        yield f"postgres://{admin.info.user}@/{name}?host={quote(host, safe='')}"
        admin.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))


def test_its_commands_environment_and_probes_make_a_portal(
    chart: Helm, tmp_path: Path, database: str, journey: Callable[[str], None]
) -> None:
    """Migration, web, worker and beat with what the rendered pods have, as processes."""
    manifests = chart.render("portal", helm.write_values(tmp_path, **_MINIMAL))
    secrets = {
        "slipway": {
            "SLIPWAY_SECRET_KEY": "a-key-of-this-test-only-" * 2,
            "SLIPWAY_DATABASE_URL": database,
            "SLIPWAY_REDIS_URL": os.environ["SLIPWAY_REDIS_URL"].rpartition("/")[0] + "/9",
        },
        "slipway-migrations": {"SLIPWAY_DATABASE_URL": database},
    }
    host = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}

    def env_of(container: Manifest) -> dict[str, str]:
        return {**host, **helm.environment(container, secrets)}

    migrate = helm.container_of(manifests, "portal-migrate")
    subprocess.run(
        helm.command(migrate, tmp_path), cwd=helm.ROOT, env=env_of(migrate), check=True, timeout=900
    )
    web = helm.container_of(manifests, "portal-web")
    port = free_ports.take_one()
    web["args"] = [item.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for item in web["args"]]
    worker = helm.container_of(manifests, "portal-worker-telemetry")
    beat = helm.container_of(manifests, "portal-beat")
    with (
        helm.process(web, env_of(web), tmp_path) as log,
        helm.process(worker, env_of(worker), tmp_path),
        helm.process(beat, env_of(beat), tmp_path),
    ):
        for probe in (web["livenessProbe"], web["readinessProbe"]):
            wait_until(partial(_answers, port, probe["httpGet"]), log.read_text)
        for alive in (worker, beat):
            wait_until(partial(_is_alive, alive, tmp_path), log.read_text)

        def telemetry() -> str:
            report = _manage(["doctor", "--json", "--area=workers"], env_of(web))
            rows = json.loads(report)["checks"]
            return next(row["status"] for row in rows if row["name"] == "Queue telemetry")

        wait_until(lambda: telemetry() == "ok", (tmp_path / "beat.log").read_text)
    journey(
        "the commands, environment and probes of the Helm chart make a portal, doctor sees its worker"
    )


def test_web_answers_with_tls_where_the_values_name_a_certificate(
    chart: Helm, tmp_path: Path
) -> None:
    manifests = chart.render("portal", helm.write_values(tmp_path, **_FULL))
    web, port, trust = web_with_tls(manifests, tmp_path)
    keys = ("SLIPWAY_SECRET_KEY", "SLIPWAY_DATABASE_URL", "SLIPWAY_REDIS_URL")
    secrets = {"slipway": {key: os.environ[key] for key in keys}, "mail": {"url": ""}}
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    probe = web["livenessProbe"]["httpGet"]
    headers = {header["name"]: header["value"] for header in probe["httpHeaders"]}

    def status() -> int:
        try:
            address = f"https://127.0.0.1:{port}{probe['path']}"
            return httpx.get(address, headers=headers, verify=trust).status_code
        except httpx.TransportError:
            return 0

    with helm.process(web, {**environment, **helm.environment(web, secrets)}, tmp_path) as log:
        wait_until(lambda: status() == 200, log.read_text)
    assert probe["scheme"] == "HTTPS"


def _is_alive(container: Manifest, scratch: Path) -> bool:
    command = [
        word.replace("/tmp", str(scratch)) for word in container["livenessProbe"]["exec"]["command"]
    ]
    return subprocess.run(command, check=False).returncode == 0


def _answers(port: int, probe: dict[str, Any]) -> bool:
    headers = {header["name"]: header["value"] for header in probe["httpHeaders"]}
    try:
        answer = plain_http.client.get(f"http://127.0.0.1:{port}{probe['path']}", headers=headers)
    except httpx.TransportError:
        return False
    return answer.status_code == 200


def _manage(arguments: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=helm.ROOT, env=env, check=False, timeout=120, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout
