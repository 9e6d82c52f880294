"""A real control plane on this machine, and what the portal does to it: `make test-cluster`."""
