"""What scanners report about a file, and our own rules by magic bytes."""
