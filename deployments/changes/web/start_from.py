"""Start the form of a new deployment from a preset or from the settings of another deployment: one control for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from deployments.changes.domain import preset_settings
from deployments.changes.selectors import presets as preset_selectors
from deployments.changes.services import presets
from deployments.changes.web import request_body
from deployments.changes.web.suggestions import Suggestions
from deployments.models import DeploymentPreset
from deployments.serving.selectors import deployments
from deployments.spec.domain.serving_spec import WHOLE_GPU
from portal.accounts.models import Team, User
from portal.core.errors import Conflict, NotFound

# The select, and the hidden field with what the form was filled from.
CHOSEN: Final = "start"
FILLED: Final = "started"
_PRESET: Final = "preset-"
_DEPLOYMENT: Final = "deployment-"
_REPLICAS: Final = ("min_replicas", "max_replicas")
_MOST_DEPLOYMENTS: Final = 50
_WHOLE: Final = {"gpu_resource": WHOLE_GPU, "gpus": 1}
_GONE: Final = "This no longer exists. Nothing was filled in; choose another start."


@dataclass(frozen=True, slots=True)
class StartOption:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class StartGroup:
    label: str
    options: Sequence[StartOption]


@dataclass(frozen=True, slots=True)
class StartPoint:
    """The preset or deployment that the form was filled from, with the fields that it filled. `is_new` says that it was
    filled by this request.
    """

    value: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    is_new: bool = False
    problem: str = ""


def value_of(preset: DeploymentPreset) -> str:
    return f"{_PRESET}{preset.pk}"


def value_of_deployment(name: str) -> str:
    return f"{_DEPLOYMENT}{name}"


def list_groups(user: User, team: Team) -> list[StartGroup]:
    """List what the form may start from: the platform's presets, the team's, and its deployments."""
    rows = preset_selectors.list_presets(actor=user, team=team)
    names = deployments.list_newest_names(user, team_slug=team.slug, count=_MOST_DEPLOYMENTS)
    groups = [
        StartGroup("Presets of the platform", _offer([row for row in rows if row.team is None])),
        StartGroup(
            f"Presets of {team.slug}", _offer([row for row in rows if row.team is not None])
        ),
        StartGroup(
            f"Settings of a deployment of {team.slug}",
            [StartOption(value_of_deployment(name), name) for name in names],
        ),
    ]
    return [group for group in groups if group.options]


def describe(value: str, user: User, team: Team) -> str:
    """Name what the form was filled from. Empty if it is from nothing, or if that is gone."""
    if value.startswith(_DEPLOYMENT):
        return value.removeprefix(_DEPLOYMENT)
    try:
        return f"“{_get_preset(value, user, team).name}”" if value else ""
    except NotFound:
        return ""


def read(posted: Mapping[str, str], user: User, team: Team) -> StartPoint:
    """Read what the form starts from. It is new if another one was chosen than the form was filled from."""
    chosen, filled = posted.get(CHOSEN, posted.get(FILLED, "")), posted.get(FILLED, "")
    if chosen == filled:
        return StartPoint(filled)
    try:
        return StartPoint(chosen, read_fields(chosen, user, team), is_new=True)
    except (NotFound, Conflict):
        return StartPoint(filled, problem=_GONE)


def fill(
    typed: Mapping[str, str], shown: Suggestions, start: StartPoint, former: Mapping[str, str]
) -> tuple[dict[str, str], Suggestions]:
    """Return the fields with those of the start. What the former start filled in is gone, unless it was changed
    since; all else stays as it was typed.
    """
    kept = {name: text for name, text in typed.items() if former.get(name) != text}
    suggested = {name: text for name, text in shown.values.items() if name not in start.fields}
    return {**kept, **start.fields}, Suggestions(suggested, shown.basis)


def read_former(posted: Mapping[str, str], user: User, team: Team) -> dict[str, str]:
    """Return the fields that the form was filled with before. Empty if that is gone."""
    try:
        return read_fields(posted.get(FILLED, ""), user, team)
    except (NotFound, Conflict):
        return {}


def read_fields(value: str, user: User, team: Team) -> dict[str, str]:
    """Return the fields of a preset or deployment. Raises NotFound, Conflict for a deployment without settings."""
    if value.startswith(_DEPLOYMENT):
        name = value.removeprefix(_DEPLOYMENT)
        return fields_of(presets.read_deployment(actor=user, team=team, name=name))
    return fields_of(_get_preset(value, user, team).settings) if value else {}


def fields_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the form's fields that the settings of a preset fill."""
    spec = {**_WHOLE, **settings}
    texts = request_body.clear_defaults(request_body.fields_of({"spec": spec}))
    names = {*request_body.texts_of(settings), *(set(settings) & {"engine", *request_body.SIZES})}
    if "instance_type" in settings:
        names.add("share")
    return {name: texts[name] for name in names}


def settings_of(data: Mapping[str, str], suggestions: Suggestions) -> dict[str, object]:
    """Return the settings of the form as those of a preset. What was chosen for the version is left to the next one."""
    spec = preset_settings.pick(request_body.spec_of(data))
    chosen = set(suggestions.values)
    if "share" in chosen:
        chosen |= {"instance_type", "gpu_resource", "gpus"}
    if not chosen.issuperset(_REPLICAS):
        # The one without the other may contradict it.
        chosen -= set(_REPLICAS)
    is_default = {
        name for name in ("cpu", "memory") if data.get(name) == request_body.DEFAULTS[name]
    }
    left_out = chosen | is_default
    return {name: value for name, value in spec.items() if name not in left_out}


def _get_preset(value: str, user: User, team: Team) -> DeploymentPreset:
    number = value.removeprefix(_PRESET)
    if not number.isascii() or not number.isdecimal() or len(number) > 18:
        raise NotFound("This preset does not exist.")
    return preset_selectors.get_preset(actor=user, team=team, preset_id=int(number))


def _offer(rows: Sequence[DeploymentPreset]) -> list[StartOption]:
    return [StartOption(value_of(row), row.name) for row in rows]
