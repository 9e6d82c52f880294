"""`make demo`: every part of the product on one machine, each a real program, under one supervisor.

Started as `python -m slipway_demo`. Nothing here imports Django before the environment
of the demo is set, because the settings read it at import.
"""

from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[3]
# Where the parts run, and `var/` is made: the checkout, or the current folder if the wheel is installed.
REPOSITORY = _CHECKOUT if (_CHECKOUT / "manage.py").is_file() else Path.cwd()
