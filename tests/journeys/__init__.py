"""Whole days of people in a real browser: what they do, what gets in their way, and how often they click."""
