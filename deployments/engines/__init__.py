"""The releases of engines: what each takes and has."""
