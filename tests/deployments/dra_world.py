"""The world with a node of NVIDIA's DRA driver beside those of the device plugin."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster, InstancePrice
from fleet.observation.services import record
from fleet.observation.services.record import FullListing, ObservedChanges
from portal.core import clock
from tests.deployments.world import World
from tests.fleet.dra_nodes import claim, dra_node, gpu, mig, resource_slice


@pytest.fixture
def dra(world: World) -> World:
    """Beside the nodes of the device plugin one of the driver, with two GPUs and a slice; one GPU is claimed."""
    found = Capabilities.from_json(Cluster.objects.get(pk=world.cluster_id).capabilities)
    features = {
        **found.features,
        "device-claims": Feature(is_there=True),
        "mig-claims": Feature(is_there=True),
    }
    Cluster.objects.update(
        capabilities={
            **found.to_json(),
            "features": {
                name: {"is_there": one.is_there, "version": "", "why": ""}
                for name, one in features.items()
            },
        }
    )
    row = InstancePrice.objects.get(instance_type="g5.xlarge")
    row.pk, row.instance_type, row.gpu_name, row.gpu_count = None, "p4de.24xlarge", "a100", 8
    row.usd_per_hour_amount = Decimal("27.447")
    row.save()
    at = clock.now()
    changes = ObservedChanges(nodes=[dra_node()])
    record.record(cluster_id=world.cluster_id, changes=changes, at=at)
    slices = resource_slice("dra-1", gpu(0), gpu(1), mig(2, "1g.10gb", "9856Mi"))
    record.replace_devices(
        cluster_id=world.cluster_id,
        slices=FullListing([slices], 1),
        claims=FullListing([claim("others", "gpu-0")], 1),
        at=at,
    )
    return world
