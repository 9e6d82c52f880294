"""A program that loads a model repository in the local Triton once: `python -m fleet.localcluster.load_test`."""
