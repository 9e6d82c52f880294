"""Uploads: from local files to a version, part by part, straight to the object store."""
