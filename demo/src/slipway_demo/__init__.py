"""`make demo`: every part of the product on one machine, each a real program, under one supervisor.

Started as `python -m slipway_demo`. Nothing here imports Django before the environment
of the demo is set, because the settings read it at import.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
