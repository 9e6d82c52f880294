"""The reports of scanners about a file, and the portal's own rules by magic bytes."""
