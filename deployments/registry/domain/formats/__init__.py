"""Formats of models, one module for each: how it is detected, read and served."""
