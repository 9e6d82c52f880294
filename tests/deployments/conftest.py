"""Fixtures of all tests about deployments."""

from tests.deployments.signed_in import signed_in
from tests.deployments.uploading import people, upload, verified
from tests.deployments.world import cluster_calls, moving_clock, world

__all__ = [
    "cluster_calls",
    "moving_clock",
    "people",
    "signed_in",
    "upload",
    "verified",
    "world",
]
