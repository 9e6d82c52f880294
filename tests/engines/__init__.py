"""Real engines on this machine's processor, with models of random weights: `make test-engines`."""
