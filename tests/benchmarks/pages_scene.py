"""The large portal of `pages`: that of fleet_scene, with many rows of all that an address can name."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import time
from typing import TYPE_CHECKING

from tests.benchmarks import fleet_scene
from tests.benchmarks.fleet_scene_history import sql

if TYPE_CHECKING:
    from fleet.clusters.domain.node_groups import NodeGroup
    from tests.portal.api.full_world import FullWorld

SCALE = float(os.environ.get("SLIPWAY_BENCH_SCALE", "1"))
_GROUPS = 60


class Groups:
    """AWS with many managed node groups; one is called gpu."""

    def __init__(self, *_: str) -> None:
        pass

    def list_names(self) -> list[str]:
        return ["gpu", *(f"gpu-{number}" for number in range(1, _GROUPS))]

    def describe(self, group: str) -> NodeGroup:
        from fleet.clusters.domain.node_groups import GroupSize, NodeGroup

        return NodeGroup(group, "ACTIVE", GroupSize(0, 8, 2), "on-demand", ("g5.xlarge",))


def build(parts: contextlib.ExitStack) -> FullWorld:
    import pytest

    from deployments.models import Deployment, Pipeline
    from deployments.registry.gateways import object_store
    from fleet.clusters.services import node_groups
    from fleet.models import Cluster
    from portal.accounts.models import Team
    from portal.core import clock
    from tests.deployments.recording_cluster import RecordingCluster
    from tests.deployments.world import Clock, connect, make_world
    from tests.portal import many_rows
    from tests.portal.api import full_world

    patch = parts.enter_context(pytest.MonkeyPatch.context())
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as clock_patch:
        world = make_world(RecordingCluster(), Clock(clock.now()))
        connect(world.cluster, patch)
        world.clock.set(clock_patch)
        patch.setattr(object_store, "store", lambda: world.store)
        full = full_world.fill(world)
        full.names["trial_id"] = world.serving(name="trial", environment="development").pk
    patch.setattr(node_groups, "factory", Groups)
    Team.objects.filter(pk=world.team.pk).update(**fleet_scene.QUOTA)
    pipeline = Pipeline.objects.get(pk=full.names["pipeline_id"])
    pipeline.spec = pipeline.changes.get().pipeline_spec
    pipeline.save()
    cluster = Cluster.objects.get(pk=world.cluster_id)
    start = fleet_scene.Start(world.admin, world.lead, world.team, cluster)
    fleet_scene.build(_size(), start)
    _pods()
    many_rows.fill(full, SCALE)
    few = many_rows.few_rows(round(20 * SCALE))
    assert not few, f"the seed has few rows of {few}"
    sql("ANALYZE")
    gc.collect()
    gc.freeze()
    print(f"seeded in {time.monotonic() - began:.0f} s, {Deployment.objects.count():,} deployments")
    return full


def _size() -> fleet_scene.Size:
    size = fleet_scene.Size()
    counts = {
        name: max(20, round(getattr(size, name) * SCALE))
        for name in ("teams", "versions", "deployments", "nodes")
    }
    return dataclasses.replace(size, days=max(2, round(size.days * SCALE)), **counts)


def _pods() -> None:
    """Those that hold the leases."""
    sql(
        """
        INSERT INTO fleet_pod (cluster_id, workload_id, node_id, namespace, name, uid, node_name,
            resource_version, labels, phase, reason, message, is_ready, restart_count, gpu_resource,
            gpu_units, cpu_millicores, memory_bytes, scheduled_at, ready_at, start_seconds, created_at)
        SELECT l.cluster_id, l.workload_id, l.node_id, l.namespace, l.pod_name, l.pod_uid, n.name,
            0, '{}', 'Running', '', '', true, 0, 'nvidia.com/gpu', 1, 2000, 8589934592, l.started_at,
            l.started_at, '{}', l.started_at
        FROM fleet_gpulease l JOIN fleet_node n ON n.id = l.node_id
        """
    )
