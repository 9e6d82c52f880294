"""The parts that run beside the API server in its process: controllers, agents and the pods' logs and ports.

They are a separate module, so that a server of the API alone starts without it, in half the time.
"""

import argparse
from collections.abc import Iterator

from slipway_localcluster.controllers.agents import Agents
from slipway_localcluster.controllers.local_pods import LocalPods
from slipway_localcluster.controllers.manager import ControllerManager
from slipway_localcluster.controllers.storage import S3Settings
from slipway_localcluster.kinds import KINDS
from slipway_localcluster.schemas.lookup import schema_of
from slipway_localcluster.store import Store


def pod_access(store: Store, options: argparse.Namespace) -> LocalPods:
    return LocalPods(store, options.data_dir)


def read_schemas() -> None:
    """Read large schemas before the server is ready, so that the first request does not wait."""
    for kind in KINDS:
        schema_of(kind)


def parts(store: Store, options: argparse.Namespace) -> Iterator[Agents | ControllerManager]:
    """Yield the parts in the order in which they start."""
    if not options.no_agents:
        yield Agents(
            store,
            data_dir=options.data_dir,
            gateway_port=options.gateway_port,
            s3=S3Settings.from_environment(endpoint_url=options.s3_endpoint),
            has_own_envoy=options.own_envoy,
            has_sample_nodes=options.sample_nodes,
        )
    yield ControllerManager(store)
