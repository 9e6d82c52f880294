"""KEDA's operator and metrics adapter as processes, with the permissions of KEDA's own service account."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from slipway_localcluster.controllers import free_ports
from tests.cluster import external_metrics
from tests.cluster.build import Build
from tests.cluster.certificates import Authority
from tests.cluster.kubectl import Kubectl
from tests.cluster.processes import Server

_NAMESPACE, _ACCOUNT = "keda", "keda-operator"
_CRD = "CustomResourceDefinition"
_ACCESS = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


@contextmanager
def running(
    build: Build, admin: Kubectl, folder: Path, *, watched: str, environment: Mapping[str, str]
) -> Iterator[Callable[[], str]]:
    """KEDA scales what is in the namespace `watched`, and serves the cluster's external metrics. Yields a
    function that returns the ends of its logs.
    """
    _install(build, admin)
    kubeconfig = admin.kubeconfig_of(_NAMESPACE, _ACCOUNT, folder / "keda.kubeconfig")
    certificates = _certificates(folder)
    operator_metrics, health, service, adapter_port = free_ports.take(4)
    settings = {
        **environment,
        "WATCH_NAMESPACE": watched,
        "POD_NAMESPACE": _NAMESPACE,
        "KEDA_CLUSTER_OBJECT_NAMESPACE": _NAMESPACE,
        "KUBECONFIG": str(kubeconfig),
    }
    with ExitStack() as stack:
        operator = Server(
            [
                build.program("keda-operator"),
                f"--metrics-bind-address=127.0.0.1:{operator_metrics}",
                f"--health-probe-bind-address=127.0.0.1:{health}",
                f"--metrics-service-bind-address=127.0.0.1:{service}",
                f"--cert-dir={certificates}",
            ],
            folder=folder,
            environment=settings,
        )
        stack.callback(operator.stop)
        operator.wait_until_ready(f"http://127.0.0.1:{health}/readyz")
        adapter = Server(
            [
                build.program("keda-adapter"),
                "--bind-address=127.0.0.1",
                f"--secure-port={adapter_port}",
                f"--metrics-service-address=127.0.0.1:{service}",
                f"--cert-dir={certificates}",
                f"--tls-cert-file={certificates / 'tls.crt'}",
                f"--tls-private-key-file={certificates / 'tls.key'}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                f"--lister-kubeconfig={kubeconfig}",
            ],
            folder=folder,
            environment=settings,
        )
        stack.callback(adapter.stop)
        trust = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        adapter.wait_until_ready(f"https://127.0.0.1:{adapter_port}/healthz", trust)
        stack.enter_context(external_metrics.registered(admin, adapter_port))
        # While the operator runs: it removes its finalizer.
        where = f"--namespace={watched}"
        stack.callback(admin.run, "delete", "scaledobjects", "--all", where)
        yield lambda: f"{operator.log_tail()}\n{adapter.log_tail()}"


def _install(build: Build, admin: Kubectl) -> None:
    """Kinds and access as KEDA ships them. Its Deployments are the processes here."""
    shipped = build.manifests("keda")
    admin.apply([item for item in shipped if item["kind"] == "Namespace"])
    admin.apply([item for item in shipped if item["kind"] in (_CRD, *_ACCESS)])
    names = [f"crd/{item['metadata']['name']}" for item in shipped if item["kind"] == _CRD]
    admin.run("wait", "--for=condition=Established", *names, "--timeout=60s")


def _certificates(folder: Path) -> Path:
    """Of the metrics service between the two, which KEDA else makes and renews by itself."""
    authority = Authority(folder / "pki")
    pair = authority.sign("keda-operator")
    certificates = folder / "certificates"
    certificates.mkdir()
    shutil.copy(authority.path, certificates / "ca.crt")
    shutil.copy(pair.certificate, certificates / "tls.crt")
    shutil.copy(pair.key, certificates / "tls.key")
    return certificates
