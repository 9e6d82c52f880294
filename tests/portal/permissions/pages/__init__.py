"""The rows of pages, by topic."""

from __future__ import annotations

from typing import Final

from tests.portal.permissions.matrix import Row
from tests.portal.permissions.pages import administration, delivery, people

ROWS: Final[tuple[Row, ...]] = (
    *people.OPEN,
    *people.OF_EVERYONE,
    *people.OF_ONESELF,
    *delivery.TEAM_PAGES,
    *delivery.FORMS_OF_MEMBERS,
    *delivery.DEPLOYMENTS,
    *delivery.MODELS,
    *delivery.PIPELINES,
    *administration.TEAMS,
    *administration.PLATFORM,
)
