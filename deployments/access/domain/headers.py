"""Headers in which callers send their keys to the gateway, however the gateway checks them."""

from __future__ import annotations

from typing import Final

# The client of OpenAI's API sends `Authorization: Bearer …`, of which the gateway takes the key.
HEADERS: Final = ("x-api-key", "Authorization")
# What every key begins with. Where keys are signed, gateways look for a token behind it only, so that the
# credentials of other routes of the same Gateway are not taken for ours.
KEY_PREFIX: Final = "slc_"
# What models and their logs get instead of the key.
CALLER_HEADER: Final = "slipway-caller"
