"""One module for each format of models: how it is detected, read and served."""
