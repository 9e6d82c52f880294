"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback."""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from slipway_localcluster.controllers import free_ports
from tests.cluster import egress
from tests.cluster.build import Build
from tests.cluster.certificates import Authority, write_kubeconfig
from tests.cluster.processes import Server

_LOOPBACK = "127.0.0.1"
# Nodes of these tests have no kubelet that renews a lease.
_CONTROLLERS = "*,-node-lifecycle-controller"


@dataclass(slots=True)
class ControlPlane:
    """Context manager: every server ends with it."""

    build: Build
    folder: Path
    authority: Authority = field(init=False)
    url: str = field(init=False)
    admin: Path = field(init=False)
    servers: list[Server] = field(init=False, default_factory=list)
    _stack: ExitStack = field(init=False, default_factory=ExitStack)

    def __enter__(self) -> ControlPlane:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(self.folder / "pki")
        with ExitStack() as stack:
            etcd = self._start_etcd(stack)
            self._start_api_server(stack, etcd)
            self.admin = self.kubeconfig("admin", group="system:masters")
            self._start_controllers(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, stack: ExitStack, command: list[str | Path], **environment: str) -> Server:
        server = Server(command, folder=self.folder, environment=environment)
        self.servers.append(server)
        stack.callback(server.stop)
        return server

    def kubeconfig(self, name: str, *, group: str = "") -> Path:
        """Of a client with a certificate of its own."""
        path = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        pair = self.authority.sign(name, group=group)
        return write_kubeconfig(path, server=self.url, authority=self.authority, pair=pair)

    def token_kubeconfig(self, name: str, token: str) -> Path:
        path = self.folder / f"{name}.kubeconfig"
        return write_kubeconfig(path, server=self.url, authority=self.authority, token=token)

    def logs(self) -> str:
        return "\n".join(f"== {server.name}\n{server.log_tail()}" for server in self.servers)

    def _start_etcd(self, stack: ExitStack) -> str:
        client, peer = (f"http://{_LOOPBACK}:{port}" for port in free_ports.take(2))
        server = self.start(
            stack,
            [
                self.build.program("etcd"),
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                # Nothing of a test run has to survive a power cut.
                "--unsafe-no-fsync=true",
                "--log-level=warn",
            ],
        )
        server.wait_until_ready(f"{client}/health")
        return client

    def _start_api_server(self, stack: ExitStack, etcd: str) -> None:
        port = free_ports.take_one()
        self.url = f"https://{_LOOPBACK}:{port}"
        serving = self.authority.sign("kube-apiserver")
        proxy = self.authority.sign("front-proxy-client")
        kubelets = self.authority.sign("kube-apiserver-kubelet-client", group="system:masters")
        connect = egress.proxy(self.folder)
        connect.start()
        stack.callback(connect.stop)
        keys = self.authority.write_service_account_keys()
        server = self.start(
            stack,
            [
                self.build.program("kube-apiserver"),
                f"--etcd-servers={etcd}",
                f"--bind-address={_LOOPBACK}",
                f"--advertise-address={_LOOPBACK}",
                f"--secure-port={port}",
                f"--tls-cert-file={serving.certificate}",
                f"--tls-private-key-file={serving.key}",
                f"--client-ca-file={self.authority.path}",
                f"--service-account-issuer={self.url}",
                f"--service-account-key-file={keys.certificate}",
                f"--service-account-signing-key-file={keys.key}",
                "--service-cluster-ip-range=10.96.0.0/16",
                # For API groups that another server serves, such as external metrics.
                f"--requestheader-client-ca-file={self.authority.path}",
                "--requestheader-allowed-names=front-proxy-client",
                "--requestheader-username-headers=X-Remote-User",
                "--requestheader-group-headers=X-Remote-Group",
                "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                f"--proxy-client-cert-file={proxy.certificate}",
                f"--proxy-client-key-file={proxy.key}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                # The address of the one server is loopback, which no Endpoints object may hold.
                "--endpoint-reconciler-type=none",
                f"--egress-selector-config-file={egress.write_selection(self.folder)}",
                # Where the node agents of this machine answer for the logs of their pods.
                "--kubelet-preferred-address-types=InternalIP",
                f"--kubelet-client-certificate={kubelets.certificate}",
                f"--kubelet-client-key={kubelets.key}",
            ],
        )
        server.wait_until_ready(f"{self.url}/readyz", self.trust())

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority.path))

    def _start_controllers(self, stack: ExitStack) -> None:
        keys = self.folder / "pki" / "service-accounts.key"
        extra: dict[str, list[str | Path]] = {
            "kube-controller-manager": [
                f"--service-account-private-key-file={keys}",
                f"--root-ca-file={self.authority.path}",
                f"--controllers={_CONTROLLERS}",
                "--use-service-account-credentials=true",
                "--horizontal-pod-autoscaler-sync-period=2s",
            ],
            "kube-scheduler": [],
        }
        started = []
        for name, arguments in extra.items():
            port = free_ports.take_one()
            kubeconfig = self.kubeconfig(f"system:{name}")
            common: list[str | Path] = [
                self.build.program(name),
                f"--kubeconfig={kubeconfig}",
                f"--bind-address={_LOOPBACK}",
                f"--secure-port={port}",
                f"--cert-dir={self.folder / name}",
                "--leader-elect=false",
            ]
            server = self.start(stack, [*common, *arguments])
            started.append((server, f"https://{_LOOPBACK}:{port}/healthz"))
        # What these two answer is of no secrecy, and their certificates are their own.
        unverified = ssl.create_default_context()
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        for server, health in started:
            server.wait_until_ready(health, unverified)
