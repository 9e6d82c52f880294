"""Whether an Envoy Gateway runs scripts of EnvoyExtensionPolicies: pure.

Read from the sources of releases v1.4.0 to v1.9.0: scripts exist since 1.4, names of callers behind the check of
keys since 1.5, `disableLua` since 1.7, and since 1.9 they are off unless `enableLua` is set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

CONFIG_MAP: Final = ("envoy-gateway-system", "envoy-gateway-config")
CONFIG_KEY: Final = "envoy-gateway.yaml"
_OLDEST: Final = (1, 5)
_OFF_BY_DEFAULT: Final = (1, 9)
_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)\b")


def runs_scripts(version: str, extension_apis: Mapping[str, Any] | None) -> tuple[bool | None, str]:
    """Return whether Envoy Gateway runs scripts, and why not. None with the reason if unknown; `extension_apis`
    None means that it could not be read.
    """
    match = _RELEASE.match(version)
    release = (int(match[1]), int(match[2])) if match else None
    if release is not None and release < _OLDEST:
        return False, f"Envoy Gateway {version} is older than 1.5"
    if extension_apis is None:
        why = f"ConfigMap {'/'.join(CONFIG_MAP)} cannot be read, which says whether scripts run."
        return None, why
    stated = _stated(extension_apis)
    if stated is None and release is None:
        return None, "The version of Envoy Gateway cannot be read, and from 1.9 on scripts are off."
    is_on = stated if stated is not None else release is not None and release < _OFF_BY_DEFAULT
    if is_on:
        return True, ""
    return False, "Envoy Gateway runs no scripts: extensionApis.enableLua is not set"


def _stated(extension_apis: Mapping[str, Any]) -> bool | None:
    if extension_apis.get("enableLua"):
        return True
    disabled = extension_apis.get("disableLua")
    return None if disabled is None else not disabled
