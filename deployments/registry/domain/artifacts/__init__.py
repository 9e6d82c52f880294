"""The files of an artifact, and reading them in ranges."""
