"""Read pickles without executing anything that they name."""
