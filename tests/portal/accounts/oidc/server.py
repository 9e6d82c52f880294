"""An OpenID Connect provider as a process on 127.0.0.1: oidc-provider-mock, with PKCE required.

`PUT /mode/<name>` makes it send what a broken or hostile provider would; `PUT /users/<subject>` sets claims.
Prints its port when it listens.
"""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import flask
import oidc_provider_mock
from authlib.jose import JsonWebKey
from oidc_provider_mock import _app, _storage
from werkzeug.serving import make_server

mode = {"name": ""}
challenges: dict[str, str] = {}
_right = _app.OpenIDCode.get_jwt_config


def jwt_config(self: Any, grant: Any, client: Any = None) -> dict[str, Any]:
    config = dict(_right(self, grant, client))
    if mode["name"] == "expired":
        config["exp"] = -3600
    if mode["name"] == "other-issuer":
        config["iss"] = "http://127.0.0.1:1"
    if mode["name"] == "other-key":
        options = {"kid": config["key"]["kid"]} if config["key"].get("kid") else {}
        other = JsonWebKey.generate_key("RSA", 2048, options=options, is_private=True)
        config["key"] = other.as_dict(is_private=True)
    return config


def signed_in_at(_: Any) -> int | None:
    """A person who has been signed in at the provider for an hour, or (None) who signs in now."""
    return int(time.time()) - 3600 if mode["name"] == "signed-in-for-an-hour" else None


def audiences(self: Any, request: Any) -> list[str]:
    return ["other"] if mode["name"] == "other-audience" else [request.client.get_client_id()]


def set_mode(name: str) -> tuple[str, int]:
    mode["name"] = "" if name == "right" else name
    return "", 204


def check_verifier() -> Any:
    if flask.request.path != "/oauth2/token":
        return None
    digest = hashlib.sha256(flask.request.form.get("code_verifier", "").encode()).digest()
    sent = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    if challenges.get(flask.request.form.get("code", "")) != sent:
        return {"error": "invalid_grant"}, 400
    return None


def keep_challenge(response: flask.Response) -> flask.Response:
    query = flask.request.args
    if query.get("code_challenge_method") == "S256" and response.location:
        for code in parse_qs(urlsplit(response.location).query).get("code", []):
            challenges[code] = query["code_challenge"]
    return response


def change_discovery(response: flask.Response) -> flask.Response:
    if not flask.request.path.startswith("/.well-known/"):
        return response
    document = response.get_json()
    if mode["name"] == "discovery-of-another":
        document["issuer"] = "https://other.example"
    if mode["name"] == "no-keys":
        document["jwks_uri"] = flask.request.host_url + "nothing"
    if mode["name"] == "no-endpoints":
        document = {"issuer": document["issuer"]}
    response.set_data("<html>" if mode["name"] == "page" else flask.json.dumps(document))
    return response


def make_app() -> flask.Flask:
    _app.OpenIDCode.get_jwt_config = jwt_config
    _app.OpenIDCode.get_audiences = audiences
    _storage.AuthorizationCode.get_auth_time = signed_in_at
    app: flask.Flask = oidc_provider_mock.app(require_nonce=True)
    app.put("/mode/<name>")(set_mode)
    app.before_request(check_verifier)
    app.after_request(keep_challenge)
    app.after_request(change_discovery)
    return app


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, make_app(), threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()
