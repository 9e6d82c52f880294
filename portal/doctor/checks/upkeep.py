"""Checks of prices and platform admins."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings

from fleet.gpus.selectors import prices
from portal.accounts import people
from portal.core import clock
from portal.doctor.lines import Line, note, ok, report_failed
from portal.doctor.registry import check

_DATABASE: Final = "Fix the database first."
_OLD: Final = timedelta(days=180)


@check("prices", "Prices", fix=_DATABASE)
def list_prices() -> Iterator[Line]:
    listed = prices.list_prices(on=clock.now().date())
    if not listed:
        yield report_failed(
            "Prices", "no prices are loaded, so every cost is $0", "Run `manage.py load_prices`."
        )
        return
    newest = max(price.valid_from for price in listed)
    if not settings.SLIPWAY_AWS_PRICES and clock.now().date() - newest > _OLD:
        fix = "Set SLIPWAY_AWS_PRICES=1, or import your contract's prices under Admin > Prices."
        yield note("Prices", f"the newest is from {newest}", fix)
    else:
        yield ok("Prices", f"{len(listed)}, the newest from {newest}")


@check("prices", "Nodes", fix=_DATABASE)
def unpriced_nodes() -> Iterator[Line]:
    unpriced = prices.nodes_without_price()
    kinds = sorted({f"{node.instance_type or 'unknown'} in {node.region}" for node in unpriced})
    if kinds:
        fix = "Enter their prices under Admin > Prices: until then their GPU hours cost nothing in reports."
        yield report_failed("Nodes", f"no price for {', '.join(kinds)}", fix)


@check("sign-in", "Platform admins", fix=_DATABASE)
def admins() -> Iterator[Line]:
    count = people.count_platform_admins()
    if not count:
        fix = "Run `manage.py createsuperuser`, or give a claim the role platform-admin."
        yield report_failed("Platform admins", "there is none", fix)
    elif count == 1:
        fix = (
            "Add a second platform admin. Nobody can replace the only one, or review their changes."
        )
        yield note("Platform admins", "one", fix)
    else:
        yield ok("Platform admins", str(count))
