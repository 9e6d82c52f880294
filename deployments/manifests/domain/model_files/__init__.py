"""How pods get the files of their models: downloads, comparison with the record, caches and volumes."""
