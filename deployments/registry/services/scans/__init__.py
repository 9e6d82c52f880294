"""Scan versions when they are verified, and again when a scanner changes."""
