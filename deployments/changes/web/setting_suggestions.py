"""Suggested values for settings of placement, read from the advice and the cluster."""

from __future__ import annotations

from dataclasses import replace

from deployments.changes.web.draft import Draft
from deployments.changes.web.settings import SettingView
from deployments.sizing.domain.ranking import Choice
from deployments.spec.domain.node_selection import MOST_OTHER_TYPES
from portal.core.definitions.figures import format_money

_OTHER_TYPES = "placement_other_instance_types"
_QUEUE = "placement_queue"


def add_suggestions(settings: dict[str, SettingView], draft: Draft) -> dict[str, SettingView]:
    added = {
        _OTHER_TYPES: _of_types(settings[_OTHER_TYPES], draft),
        _QUEUE: _of_queues(settings[_QUEUE], draft),
    }
    return settings | added


def _of_queues(view: SettingView, draft: Draft) -> SettingView:
    """Suggest the LocalQueues of the team's namespace, as of the cluster's last check."""
    kueue = draft.cluster.capabilities.kueue if draft.cluster else None
    if kueue is None or kueue.queues is None:
        return view
    names = kueue.names_in(draft.team.slug)
    note = f"There: {', '.join(names)}." if names else f"{draft.team.slug} has none yet."
    return replace(view, suggestions=names, note=note)


def _of_types(view: SettingView, draft: Draft) -> SettingView:
    """Suggest other instance types that fit. Unchanged without advice, or if no other type fits."""
    ranked = draft.advice.ranked if draft.advice else ()
    chosen = next((choice for choice in ranked if _is_chosen(choice, draft)), None)
    if chosen is None or not chosen.also_on:
        return view
    names = chosen.also_on[:MOST_OTHER_TYPES]
    priced = {
        choice.offer.instance_type: _price(choice)
        for choice in ranked
        if choice.offer.gpu_resource == chosen.offer.gpu_resource
        and choice.offer.gpus == chosen.offer.gpus
    }
    listed = ", ".join(f"{name}{priced[name]}" for name in names)
    return replace(view, suggestions=[", ".join(names)], note=f"The model also fits on {listed}.")


def _is_chosen(choice: Choice, draft: Draft) -> bool:
    share, offer = draft.share, choice.offer
    return share is not None and share.size == (offer.instance_type, offer.gpu_resource, offer.gpus)


def _price(choice: Choice) -> str:
    amount = choice.offer.usd_per_hour_amount
    return "" if amount is None else f" ({format_money(amount)} an hour)"
