"""Many rows behind every page: copies of what a FullWorld has one of.

`scale` multiplies each number. Everything hangs on the objects that `FullWorld.names` names, so that their
pages and lists show it. A table of the product with few rows is an omission: `few_rows` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.apps import apps

from tests.portal.api.full_world import FullWorld
from tests.portal.many_rows import accounts, changes, fleet, registry, serving

# Tables with one row for the platform, a cluster or a team, with rows of sealing and of workers alone, or that
# no page and no list reads.
NOT_COPIED = frozenset(
    {
        "installation",
        *("cluster", "gitdelivery", "signingkey", "loadtestplace", "loadtestrun", "rolloutlimit"),
        *("callercounter", "callerreading", "energyreading", "unpricedhour", "budgetalert"),
        "scrapereading",
        *("metricsample", "workloadminute", "workloadhour", "workloadday", "teamusageday"),
        *("ledgerteamhour", "ledgerteamday", "ledgerday", "ledgermonth", "ledgerrow"),
        *("openhour", "openhoursum", "summedday", "sealedhour"),
        *("chainanchor", "anchorcopy", "chaincheck", "streamposition", "idempotencyrecord"),
        *("gitexport", "prometheusreading", "embeddingreference", "answerday"),
        *("syntheticrequest", "synthetichour", "versiondocument"),
        *("authenticator", "passkey", "recoverycode", "passwordlink", "decisionlink"),
        *("identity", "provisionedperson", "provisionedgroup"),
    }
)


def fill(full: FullWorld, scale: float) -> None:
    people = accounts.fill(full, scale)
    registry.fill(full, scale)
    serving.fill(full, scale)
    changes.fill(full, scale, people)
    fleet.fill(full, scale)


def few_rows(least: int) -> Mapping[str, int]:
    """Tables of the product with fewer rows, by name."""
    counts = {
        model._meta.model_name or "": model._default_manager.count()
        for model in apps.get_models()
        if model._meta.app_config is not None
        and model.__module__.startswith(("deployments.", "fleet.", "portal."))
        and not model._meta.proxy
    }
    return {
        name: count for name, count in counts.items() if count < least and name not in NOT_COPIED
    }
