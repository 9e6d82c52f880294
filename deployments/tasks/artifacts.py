"""Verifying uploads."""
