"""Django's backend for PostgreSQL, with a check of kept connections that needs no round trip."""
