from tests.deployments.signed_in import signed_in
from tests.deployments.world import cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "signed_in", "world"]
