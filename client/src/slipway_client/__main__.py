"""`python -m slipway_client` is the command `slipway`."""

from slipway_client.cli.main import run

if __name__ == "__main__":
    run()
