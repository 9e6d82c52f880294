"""Kubernetes APIs as the node agent and the gateway use them."""
