"""Aliases: movable names of versions. Only leads move protected ones."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from deployments.models import Alias, Model, ModelVersion
from deployments.registry.selectors import versions
from deployments.spec.domain import model_names
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action, Actor
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid

MOVED = register("alias.moved", "moved alias")
REMOVED = register("alias.removed", "removed alias")
MAX_ALIASES: Final = 20


def move(
    *,
    actor: User,
    team_slug: str,
    model_name: str,
    alias: str,
    number: int,
    is_protected: bool | None = None,
) -> Alias:
    """Point the alias to a ready version; create it if new. `is_protected` None keeps the setting.

    Moving a protected alias, and changing the protection, needs a lead. A new `champion` is
    protected.
    """
    model = versions.get_model(actor=actor, team_slug=team_slug, name=model_name)
    policy.require(actor, Action.MOVE_ALIAS, model)
    if problem := model_names.alias_problem(alias):
        raise Invalid(problem, fields={"alias": problem})
    old = model.aliases.select_related("version").filter(name=alias).first()
    was_protected = old.is_protected if old else model_names.is_protected_by_default(alias)
    protect = was_protected if is_protected is None else is_protected
    if was_protected or protect:
        policy.require(actor, Action.MOVE_PROTECTED_ALIAS, model)
    version = _ready_version(model, number)
    if old is None and model.aliases.count() >= MAX_ALIASES:
        raise Conflict(f"{model} has {MAX_ALIASES} aliases; remove one first.", code="too_many")
    if old is not None and (old.version_id, was_protected) == (version.pk, protect):
        return old
    return _write(actor, model, alias, old=old, version=version, is_protected=protect)


def version_of(model: Model, alias: str) -> int | None:
    """Return the id of the version that the alias names. None without the alias."""
    return (
        Alias.objects.filter(model=model, name=alias).values_list("version_id", flat=True).first()
    )


def move_back(*, actor: Actor, alias: str, source: ModelVersion, target: ModelVersion) -> bool:
    """Undo a move together with the change that made it, whose approval is enough. False, and nothing
    moved, where the alias no longer points to `source`. Call inside a transaction.
    """
    model = source.model
    rows = Alias.objects.filter(model=model, name=alias, version=source)
    old = rows.first()
    if old is None or not rows.update(version=target, moved_at=clock.now()):
        return False
    _touch(model)
    trail.record(
        actor=actor,
        action=MOVED,
        obj=model,
        label=f"{model}@{alias}",
        team_slug=model.team.slug,
        before=_audit_values(source.number, is_protected=old.is_protected),
        after=_audit_values(target.number, is_protected=old.is_protected),
    )
    return True


def remove(*, actor: User, team_slug: str, model_name: str, alias: str) -> None:
    model = versions.get_model(actor=actor, team_slug=team_slug, name=model_name)
    policy.require(actor, Action.MOVE_ALIAS, model)
    old = versions.get_alias(actor=actor, team_slug=team_slug, model_name=model_name, alias=alias)
    if old.is_protected:
        policy.require(actor, Action.MOVE_PROTECTED_ALIAS, model)
    with transaction.atomic():
        deleted, _ = Alias.objects.filter(pk=old.pk, version_id=old.version_id).delete()
        if not deleted:
            raise _moved_concurrently(model, alias)
        _touch(model)
        trail.record(
            actor=actor,
            action=REMOVED,
            obj=model,
            label=f"{model}@{alias}",
            team_slug=model.team.slug,
            before=_audit_values(old.version.number, is_protected=old.is_protected),
        )


def _ready_version(model: Model, number: int) -> ModelVersion:
    version = model.versions.filter(number=number).first()
    if version is None:
        raise Invalid(f"{model} has no version {number}.", fields={"version": "no such version"})
    if version.state != VersionState.READY:
        raise Conflict(
            f"{model}:{number} is {version.state}; an alias must point to a ready version.",
            code="wrong_state",
        )
    return version


def _write(
    actor: User,
    model: Model,
    name: str,
    *,
    old: Alias | None,
    version: ModelVersion,
    is_protected: bool,
) -> Alias:
    at = clock.now()
    fields = {"version_id": version.pk, "is_protected": is_protected, "moved_at": at}
    with transaction.atomic():
        if old is None:
            alias, is_new = Alias.objects.get_or_create(model=model, name=name, defaults=fields)
            changed = int(is_new)
        else:
            alias = old
            rows = Alias.objects.filter(
                pk=old.pk, version_id=old.version_id, is_protected=old.is_protected
            )
            changed = rows.update(**fields)
        if changed != 1:
            raise _moved_concurrently(model, name)
        _touch(model)
        trail.record(
            actor=actor,
            action=MOVED,
            obj=model,
            label=f"{model}@{name}",
            team_slug=model.team.slug,
            before=_audit_values(old.version.number, is_protected=old.is_protected) if old else {},
            after=_audit_values(version.number, is_protected=is_protected),
        )
    alias.version, alias.is_protected, alias.moved_at = version, is_protected, at
    return alias


def _touch(model: Model) -> None:
    Model.objects.filter(pk=model.pk).update(changed_at=clock.now())


def _moved_concurrently(model: Model, name: str) -> Conflict:
    return Conflict(
        f"{model}@{name} was moved by someone else. Reload and try again.", code="alias_moved"
    )


def _audit_values(number: int, *, is_protected: bool) -> dict[str, object]:
    return {"version": number, "is_protected": is_protected}
