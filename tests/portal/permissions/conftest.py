from tests.portal.api.conftest import cluster_calls, full_world, moving_clock, world

__all__ = ["cluster_calls", "full_world", "moving_clock", "world"]
