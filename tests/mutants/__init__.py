"""Breaks the product in many places and shows which tests notice: `python -m tests.mutants`.

Run it before and after tests are removed: the same mutants must be caught.
"""
