"""What the chart renders: where pods run, who may talk to whom, what leads to web, and what watches it."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import helm, kserve
from tests.cluster.helm import Helm, Manifest
from tests.cluster.installed_portal import HOST
from tests.cluster.kubectl import Kubectl
from tests.cluster.test_chart import _FULL, _MINIMAL, chart, restricted

__all__ = ["chart", "restricted"]

_ROLES = ("web", "worker-delivery", "worker-artifacts", "beat", "watcher", "migrate")
_SECTION = {"worker-delivery": "workers", "worker-artifacts": "workers", "migrate": "migrations"}


def _rendered(chart: Helm, folder: Path, **values: Any) -> list[Manifest]:
    return chart.render("portal", helm.write_values(folder, **{**_MINIMAL, **values}))


def _pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Templates by role, and the Pod of `helm test`."""
    found = {}
    for item in manifests:
        if item["kind"] in ("Deployment", "Job"):
            found[item["metadata"]["name"].removeprefix("portal-")] = item["spec"]["template"]
        if item["kind"] == "Pod":
            found["test"] = item
    return found


def _of(manifests: list[Manifest], kind: str, name: str = "portal") -> Manifest:
    (found,) = [
        item for item in manifests if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]
    return found


def test_a_companys_authority_reaches_every_pod(chart: Helm, tmp_path: Path) -> None:
    pods = _pods(chart.render("portal", helm.write_values(tmp_path, **_FULL)))

    assert set(pods) >= {*_ROLES, "test"}
    for role, pod in pods.items():
        (container,) = pod["spec"]["containers"]
        assert {"name": "SSL_CERT_FILE", "value": "/company/ca.crt"} in container["env"], role
        assert _FULL["extraVolumeMounts"][0] in container["volumeMounts"], role
        assert _FULL["extraVolumes"][0] in pod["spec"]["volumes"], role
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}, role


_SETTINGS = {
    "nodeSelector": ({"pool": "all"}, {"pool": "own"}),
    "tolerations": ([{"key": "all", "operator": "Exists"}], [{"key": "own", "operator": "Exists"}]),
    "affinity": ({"nodeAffinity": {"of": "all"}}, {"nodeAffinity": {"of": "own"}}),
    "priorityClassName": ("all", "own"),
}


@pytest.mark.parametrize("name", _SETTINGS)
@pytest.mark.parametrize("role", _ROLES)
def test_what_a_role_has_of_its_own_wins(role: str, name: str, chart: Helm, tmp_path: Path) -> None:
    of_all, own = _SETTINGS[name]
    section = _SECTION.get(role, role)
    part = {name: own}
    if section == "workers":
        part = {role.removeprefix("worker-"): part}

    pods = _pods(_rendered(chart, tmp_path, **{name: of_all, section: part}))

    for other in _ROLES:
        assert pods[other]["spec"][name] == (own if other == role else of_all), other


@pytest.mark.parametrize("role", _ROLES)
def test_labels_and_annotations_are_added(role: str, chart: Helm, tmp_path: Path) -> None:
    section = _SECTION.get(role, role)
    own: dict[str, Any] = {
        "podLabels": {"of": "own", "app.kubernetes.io/name": "other"},
        "podAnnotations": {"of": "own"},
    }
    if section == "workers":
        own = {role.removeprefix("worker-"): own}
    of_all = {"podLabels": {"of": "all", "all": "1"}, "podAnnotations": {"of": "all", "all": "1"}}

    pods = _pods(_rendered(chart, tmp_path, **of_all, **{section: own}))

    for other in _ROLES:
        made = pods[other]["metadata"]
        expected = {"of": "own" if other == role else "all", "all": "1"}
        assert made["annotations"] == expected, other
        assert expected.items() <= made["labels"].items(), other
        # Else the Deployment would not find its pods.
        assert made["labels"]["app.kubernetes.io/name"] == "slipway", other
        assert made["labels"]["app.kubernetes.io/component"] == other


def test_nothing_is_looked_up_without_a_cluster(chart: Helm, tmp_path: Path) -> None:
    """Argo CD renders so: no checksum that comes and goes, replicas only where nothing scales."""
    hpa = {"kind": "hpa", "min": 2, "max": 5, "cpuPercent": 60}
    manifests = _rendered(chart, tmp_path, web={"autoscaling": hpa})

    assert "replicas" not in _of(manifests, "Deployment", "portal-web")["spec"]
    assert _of(manifests, "Deployment", "portal-beat")["spec"]["replicas"] == 1
    assert "checksum" not in json.dumps(manifests)


def _selects(policy: Manifest, pod: Manifest) -> bool:
    labels: dict[str, str] = policy["spec"]["podSelector"]["matchLabels"]
    return labels.items() <= pod["metadata"]["labels"].items()


def _reaches(policies: list[Manifest], address: str, port: int) -> bool:
    """As a network plugin reads egress: any rule of any policy lets it through."""
    there = ipaddress.ip_address(address)

    def takes(peer: dict[str, Any]) -> bool:
        block = peer.get("ipBlock")
        if block is None or there not in ipaddress.ip_network(block["cidr"]):
            return False
        return not any(there in ipaddress.ip_network(one) for one in block.get("except", []))

    return any(
        any(row["port"] == port for row in rule["ports"]) and any(map(takes, rule.get("to", [])))
        for policy in policies
        for rule in policy["spec"].get("egress", [])
    )


_WAYS = {
    "S3 by IPv4": ("52.216.1.1", 443, True),
    "S3 by IPv6": ("2600:1fa0::1", 443, True),
    "the database by IPv4": ("10.0.0.5", 5432, True),
    "the database by IPv6": ("fd12:3456::5", 5432, True),
    "Valkey by IPv6": ("fd12:3456::6", 6379, True),
    "Pod Identity by IPv4": ("169.254.170.23", 80, True),
    "Pod Identity by IPv6": ("fd00:ec2::23", 80, True),
    "the node's credentials by IPv4": ("169.254.169.254", 80, False),
    "the node's credentials by IPv6": ("fd00:ec2::254", 80, False),
    "the node's credentials by TLS": ("fd00:ec2::254", 443, False),
    "a link-local address": ("fe80::1", 443, False),
    "another port": ("2600:1fa0::1", 22, False),
}


@pytest.mark.parametrize("way", _WAYS)
def test_pods_reach_what_they_need_by_both_protocols(way: str, chart: Helm, tmp_path: Path) -> None:
    address, port, is_open = _WAYS[way]
    manifests = _rendered(chart, tmp_path)
    pod = _pods(manifests)["worker-delivery"]
    policies = [one for one in manifests if one["kind"] == "NetworkPolicy" and _selects(one, pod)]

    assert _reaches(policies, address, port) is is_open


def test_a_first_migration_reaches_its_database_where_all_is_denied(
    chart: Helm, tmp_path: Path
) -> None:
    """The policy is a hook before the Job, and not of the release, which comes later."""
    manifests = _rendered(chart, tmp_path)
    job = _of(manifests, "Job", "portal-migrate")
    (early,) = [
        item
        for item in manifests
        if item["kind"] == "NetworkPolicy"
        and "helm.sh/hook" in item["metadata"].get("annotations", {})
    ]

    assert _selects(early, job["spec"]["template"])
    assert _reaches([early], "10.0.0.5", 5432)
    assert not _reaches([early], "52.216.1.1", 443)
    assert {"port": 53, "protocol": "UDP"} in early["spec"]["egress"][0]["ports"]
    hooks = [item["metadata"]["annotations"] for item in (early, job)]
    assert len({one["helm.sh/hook"] for one in hooks}) == 1
    weights = [int(one.get("helm.sh/hook-weight", "0")) for one in hooks]
    assert weights == sorted(weights)
    assert weights[0] != weights[1]
    for one in hooks:
        assert "hook-failed" in one["helm.sh/hook-delete-policy"]
    assert hooks[1]["helm.sh/hook-output-log-policy"] == "hook-failed"


def test_a_missing_secret_is_told_by_the_migration_itself(chart: Helm, tmp_path: Path) -> None:
    """The kubelet would not start the container, and say nothing that Helm prints."""
    mail = [{"name": "SLIPWAY_SMTP_URL", "secretName": "mail", "key": "url"}]
    manifests = _rendered(chart, tmp_path, secretSettings=mail)
    container = helm.container_of(manifests, "portal-migrate")
    references = [
        row["valueFrom"]["secretKeyRef"] for row in container["env"] if "valueFrom" in row
    ]

    assert references
    assert all(row["optional"] for row in references)
    web = helm.container_of(manifests, "portal-web")
    assert not any(
        row["valueFrom"]["secretKeyRef"].get("optional") for row in web["env"] if "valueFrom" in row
    )


def test_an_alb_finds_web_healthy(chart: Helm, tmp_path: Path) -> None:
    alb = "alb.ingress.kubernetes.io"

    def annotations(**values: Any) -> dict[str, str]:
        manifests = _rendered(chart, tmp_path, **values)
        found: dict[str, str] = _of(manifests, "Ingress")["metadata"].get("annotations", {})
        return found

    made = annotations(ingress={"enabled": True})
    assert made[f"{alb}/target-type"] == "ip"
    assert made[f"{alb}/healthcheck-path"] == "/healthz"
    assert made[f"{alb}/backend-protocol"] == "HTTP"
    assert json.loads(made[f"{alb}/listen-ports"]) == [{"HTTPS": 443}]
    own = {f"{alb}/healthcheck-path": "/readyz", f"{alb}/scheme": "internet-facing"}
    tls = annotations(
        ingress={"enabled": True, "annotations": own}, web={"tlsSecretName": "web-tls"}
    )
    assert own.items() <= tls.items()
    assert tls[f"{alb}/backend-protocol"] == "HTTPS"
    assert annotations(ingress={"enabled": True, "className": "nginx"}) == {}


def test_a_route_leads_to_the_service(chart: Helm, tmp_path: Path) -> None:
    parent = {"name": "public", "namespace": "gateways", "sectionName": "https"}
    manifests = _rendered(chart, tmp_path, httpRoute={"enabled": True, "parentRefs": [parent]})
    route, service = _of(manifests, "HTTPRoute")["spec"], _of(manifests, "Service")

    assert (route["parentRefs"], route["hostnames"]) == ([parent], [HOST])
    (backend,) = route["rules"][0]["backendRefs"]
    assert backend == {
        "name": service["metadata"]["name"],
        "port": service["spec"]["ports"][0]["port"],
    }


def test_a_route_without_a_gateway_is_refused(chart: Helm, tmp_path: Path) -> None:
    with pytest.raises(helm.Refused, match="parentRefs"):
        _rendered(chart, tmp_path, httpRoute={"enabled": True})


@pytest.mark.parametrize("listen", ["0.0.0.0", "[::]"])
def test_web_listens_by_the_protocol_of_the_pods(listen: str, chart: Helm, tmp_path: Path) -> None:
    web = helm.container_of(_rendered(chart, tmp_path, web={"listenOn": listen}), "portal-web")

    assert f"--bind={listen}:8000" in web["args"]


@pytest.fixture
def monitored(chart: Helm, tmp_path: Path) -> list[Manifest]:
    metrics = {
        "tokenSecret": {"name": "scrape", "key": "token"},
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Slipway"}},
    }
    return _rendered(chart, tmp_path, metrics=metrics)


def test_rules_are_those_that_prometheus_takes(monitored: list[Manifest], tmp_path: Path) -> None:
    rule = _of(monitored, "PrometheusRule")
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps(rule["spec"]))

    checked = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    names = {row["alert"] for group in rule["spec"]["groups"] for row in group["rules"]}
    assert {"SlipwayPortalAbsent", "SlipwayPortalQueue"} <= names


def test_dashboards_are_what_grafanas_sidecar_reads(monitored: list[Manifest]) -> None:
    maps = [item for item in monitored if item["kind"] == "ConfigMap"]

    assert len(maps) == 3
    for item in maps:
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((name, text),) = item["data"].items()
        assert name.endswith(".json")
        assert json.loads(text)["panels"]


@pytest.mark.skipif(kserve.named_folder() is None, reason="its kinds come with SLIPWAY_CRD_DIR")
def test_a_cluster_takes_what_watches_it(
    monitored: list[Manifest], restricted: str, admin: Kubectl
) -> None:
    kinds = ("PrometheusRule", "ServiceMonitor", "ConfigMap")
    admin.apply(
        {**item, "metadata": {**item["metadata"], "namespace": restricted}}
        for item in monitored
        if item["kind"] in kinds
    )


def _policies_of(manifests: list[Manifest], role: str) -> Iterator[Manifest]:
    pod = _pods(manifests)[role]
    return (item for item in manifests if item["kind"] == "NetworkPolicy" and _selects(item, pod))


def test_helm_test_may_ask_web(chart: Helm, tmp_path: Path) -> None:
    closed = {"from": [{"ipBlock": {"cidr": "10.0.0.0/16"}}]}
    manifests = _rendered(chart, tmp_path, networkPolicy=closed)
    pods = _pods(manifests)

    ways = [
        peer["podSelector"]["matchLabels"]
        for policy in _policies_of(manifests, "test")
        for rule in policy["spec"].get("egress", [])
        for peer in rule.get("to", [])
        if "podSelector" in peer
    ]
    assert any(way.items() <= pods["web"]["metadata"]["labels"].items() for way in ways)
    sources = [
        peer["podSelector"]["matchLabels"]
        for policy in _policies_of(manifests, "web")
        for rule in policy["spec"].get("ingress", [])
        for peer in rule.get("from", [])
        if "podSelector" in peer
    ]
    assert any(one.items() <= pods["test"]["metadata"]["labels"].items() for one in sources)
    assert not any(one.items() <= pods["beat"]["metadata"]["labels"].items() for one in sources)
