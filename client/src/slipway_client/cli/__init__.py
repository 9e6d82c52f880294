"""The command `slipway`: one module for each group of commands."""
