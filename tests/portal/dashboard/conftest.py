from tests.deployments.delivery.conftest import cluster_calls, moving_clock, world
from tests.deployments.web.conftest import signed_in

__all__ = ["cluster_calls", "moving_clock", "signed_in", "world"]
