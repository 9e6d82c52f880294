"""Presigned addresses from which people download objects."""

from __future__ import annotations

from typing import Any

from deployments.registry.gateways.object_store_errors import translate_errors


def sign(client: Any, bucket: str, key: str, *, filename: str, seconds: int) -> str:
    """Sign a URL that downloads the newest version by GET. A browser saves it under `filename` and never shows
    it as a page.
    """
    params = {
        "Bucket": bucket,
        "Key": key,
        "ResponseContentDisposition": f'attachment; filename="{filename}"',
        "ResponseContentType": "application/octet-stream",
    }
    with translate_errors(key):
        return str(client.generate_presigned_url("get_object", Params=params, ExpiresIn=seconds))
