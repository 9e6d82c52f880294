"""Level-triggered controllers of the embedded cluster: they compare the store with the world."""
