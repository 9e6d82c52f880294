"""A Triton model repository that someone brings: its models, what they need, and the one that is served."""
