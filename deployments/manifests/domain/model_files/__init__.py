"""The ways of model files into pods: downloads, comparison with the record, caches and volumes."""
