"""The rows of the API, by topic."""

from __future__ import annotations

from typing import Final

from tests.portal.permissions.matrix import Row
from tests.portal.permissions.operations import platform, reading, teams

ROWS: Final[tuple[Row, ...]] = (
    *reading.READ_BY_EVERYONE,
    *reading.READ_BY_THE_TEAM,
    *reading.READ_WHERE_IT_CAN,
    *teams.OF_MLFLOW,
    *teams.CONVERTED_BY_THE_TEAM,
    *teams.COMMENTED_BY_THE_TEAM,
    *teams.BY_MEMBERS,
    *teams.OF_NOBODY,
    *teams.DECISIONS,
    *teams.BY_LEADS,
    *platform.OF_THE_FLEET,
    *platform.BY_ADMINS,
    *teams.OF_ONESELF,
)
