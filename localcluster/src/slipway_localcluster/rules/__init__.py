"""The rules by which a Kubernetes API server refuses built-in kinds, beside types and unknown fields.

Each rule takes the path of a value and the value, whose types have been checked, and yields causes with the fields
that a real server names; tests/fidelity compares both.
"""
