"""The table of releases, and what a release lacks."""
