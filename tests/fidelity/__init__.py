"""The same objects, good and broken, to a real API server and to the embedded one: one table."""
