"""Applying changes, reconciling deployments, advancing rollouts."""
