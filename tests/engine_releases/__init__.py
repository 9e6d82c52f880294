"""`make engines`: read from an engine's own sources what a release takes and has, and show what changed."""
