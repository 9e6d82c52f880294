"""References to external weights: what they name, whether they are pinned, and which engines load them.

hf://organisation/model[:commit]      pvc://claim[/path]      oci://registry/image[:tag][@digest]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from deployments.spec.domain.engines import LLM_ENGINES, OPENAI_ENGINES
from portal.core.definitions import Rejected

FIELD: Final = "source_uri"
MAX_LENGTH: Final = 250
HUGGING_FACE: Final = "hf"
CLAIM: Final = "pvc"
IMAGE: Final = "oci"
_PATTERNS: Final = {
    HUGGING_FACE: re.compile(
        r"hf://(?P<name>[A-Za-z0-9][-\w.]{0,95}/[A-Za-z0-9][-\w.]{0,95})(:(?P<pin>\w[-\w.]{0,63}))?",
        re.ASCII,
    ),
    CLAIM: re.compile(
        r"pvc://(?P<name>[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?)(/[-\w.]+)*/?(?P<pin>)", re.ASCII
    ),
    IMAGE: re.compile(
        r"oci://(?P<name>[a-z0-9][-a-z0-9.]*(:[0-9]{1,5})?(/[a-z0-9][-a-z0-9._]*)+)"
        r"(:\w[-\w.]{0,127})?(@(?P<pin>sha256:[0-9a-f]{64}))?",
        re.ASCII,
    ),
}
# How valid references end that have a pin.
_PINNED: Final = {
    HUGGING_FACE: re.compile(r":[0-9a-f]{40}\Z"),
    IMAGE: re.compile(r"@sha256:[0-9a-f]{64}\Z"),
}
_FORMS: Final = {
    HUGGING_FACE: "hf://organisation/model:commit",
    CLAIM: "pvc://claim/path",
    IMAGE: "oci://registry/image:tag@sha256:digest",
}
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
# Formats of tokens of Hugging Face, AWS, GitHub and GitLab.
_TOKEN: Final = re.compile(
    r"hf_[A-Za-z0-9]{20}|(AKIA|ASIA)[A-Z0-9]{16}|gh[a-z]_[A-Za-z0-9]{20}|glpat-[-\w]{10}"
)
_ADVICE: Final = {
    HUGGING_FACE: "A branch or tag can move: add the commit, ':' and 40 hexadecimal digits.",
    CLAIM: "Files on a volume can be replaced: use a separate path for each version.",
    IMAGE: "A tag can move: add the digest, '@sha256:' and 64 hexadecimal digits.",
}


@dataclass(frozen=True, slots=True)
class ExternalWeights:
    """A reference to external weights. `name` is the model, claim or image; `pin` the commit or digest, or
    empty.
    """

    uri: str
    scheme: str
    name: str
    pin: str

    @property
    def is_pinned(self) -> bool:
        """Whether the reference always resolves to the same bytes."""
        return bool(self.pin)

    @property
    def advice(self) -> str:
        """The advice how to pin the reference. Empty if it is pinned."""
        return "" if self.is_pinned else _ADVICE[self.scheme]

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines that can load it. Triton's vLLM backend supports Hugging Face ids only."""
        return LLM_ENGINES if self.scheme == HUGGING_FACE else OPENAI_ENGINES

    @property
    def hugging_face_id(self) -> str:
        return self.uri.removeprefix("hf://") if self.scheme == HUGGING_FACE else ""

    @property
    def artifact(self) -> str:
        return "" if self.scheme == HUGGING_FACE else self.uri


def parse(text: str) -> ExternalWeights:
    """Parse a reference. Raises Rejected with the fix. The message does not repeat anything that looks like a
    secret.
    """
    uri = text.strip()
    problem = _problem_with(uri)
    if problem:
        raise Rejected(problem, {FIELD: problem})
    scheme = uri.partition("://")[0]
    match = _PATTERNS[scheme].fullmatch(uri)
    if match is None:
        message = f"Use the form {_FORMS[scheme]}."
        raise Rejected(message, {FIELD: message})
    pin = match["pin"] or ""
    if scheme == HUGGING_FACE and not _COMMIT.fullmatch(pin):
        pin = ""
    return ExternalWeights(uri=uri, scheme=scheme, name=match["name"], pin=pin)


def is_pinned(uri: str) -> bool:
    """Return whether a valid reference, as stored, is pinned."""
    pinned = _PINNED.get(uri.partition("://")[0])
    return bool(pinned and pinned.search(uri))


def from_spec(*, hugging_face_id: str, artifact: str) -> ExternalWeights | None:
    """Return the weights named by a serving spec. None without a valid reference."""
    uri = f"hf://{hugging_face_id}" if hugging_face_id else artifact
    try:
        return parse(uri)
    except Rejected:
        return None


def _problem_with(uri: str) -> str:
    if not uri:
        return f"Enter the location of the weights: {', '.join(_FORMS.values())}."
    if _has_secret(uri):
        return (
            "The reference seems to contain a password or token. Remove it: pods use the "
            "credentials of the team's namespace."
        )
    if len(uri) > MAX_LENGTH:
        return f"The reference has {len(uri)} characters; the limit is {MAX_LENGTH}."
    if uri.partition("://")[0] not in _PATTERNS or "://" not in uri:
        return (
            f"Slipway supports {', '.join(_FORMS.values())}. Upload files from other "
            "sources instead."
        )
    if ".." in uri:
        return "The path contains '..'. Use the full path."
    return ""


def _has_secret(uri: str) -> bool:
    """Whether it contains user:password@host, ?key=value or a token of a known format."""
    _, _, rest = uri.partition("://")
    before_at, at, after_at = rest.partition("@")
    is_digest = after_at.startswith("sha256:") and "/" in before_at
    return bool((at and not is_digest) or set("?#&=") & set(rest) or _TOKEN.search(uri))
