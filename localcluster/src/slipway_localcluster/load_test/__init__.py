"""A program that loads a model repository in the local Triton once: `python -m slipway_localcluster.load_test`."""
