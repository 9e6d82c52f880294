"""The gateway to Git repositories: read a folder, change it and push, without a working copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import urllib3
from dulwich.client import HTTPUnauthorized, Urllib3HttpGitClient, get_transport_and_path_from_url
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from dulwich.object_store import commit_tree_changes, iter_tree_contents, tree_lookup_path
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.pack import pack_objects_to_data
from dulwich.refs import Ref
from dulwich.repo import MemoryRepo

from portal.core import network_failures

_TIMEOUT = urllib3.Timeout(connect=3.0, read=20.0)
_MOST_TRIES = 5
_NO_COMMIT = ObjectID(b"")
_FILE_MODE = 0o100644
_COMMITTER = b"Slipway <slipway@localhost>"


class GitError(Exception):
    """An error of a Git repository. `message` never holds a credential."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class GitUnreachable(GitError):
    """The Git server does not answer. Trying again may help."""


class GitRefused(GitError):
    """The credential, the branch or a rule of the repository is wrong: trying again does not help."""


@dataclass(frozen=True, slots=True)
class Remote:
    url: str
    branch: str
    username: str = ""
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class GitCommit:
    """The commit that has the change. `is_new` is False if the branch contained the change already."""

    sha: str
    is_new: bool


# From the files of a folder, by relative path, to the desired ones.
Change = Callable[[Mapping[str, str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class _Push:
    """An attempt to push. `base` is empty for the first commit of an empty repository."""

    base: ObjectID
    head: ObjectID
    objects: list[Any]


def commit(remote: Remote, *, folder: str, change: Change, message: str, at: datetime) -> GitCommit:
    """Push one commit on top of the branch, unless the folder is as desired already.

    After a concurrent push the branch is read again and the change applied on top of it. Raises GitRefused and
    GitUnreachable.
    """
    refusal = ""
    last = _NO_COMMIT
    for _ in range(_MOST_TRIES):
        push = _prepare(remote, folder, change, message, at)
        if not push.objects:
            return GitCommit(push.base.decode(), is_new=False)
        if refusal and push.base == last:
            raise GitRefused(f"{remote.url} rejected the push to {remote.branch}: {refusal}")
        refusal = _send(remote, push)
        if not refusal:
            return GitCommit(push.head.decode(), is_new=True)
        last = push.base
    raise GitUnreachable(f"{remote.url} received other pushes each time Slipway tried to push.")


def head_of(remote: Remote) -> str:
    """Return the commit that the branch is at. Empty for an empty repository."""
    return _fetch(remote)[1].decode()


def _prepare(remote: Remote, folder: str, change: Change, message: str, at: datetime) -> _Push:
    repo, base = _fetch(remote)
    store = repo.object_store
    known = set(store)
    tree = _tree_of(store, base)
    before = _files(store, tree.id, folder)
    after = change(before)
    changes: list[Any] = [(_path(folder, path), None, None) for path in before if path not in after]
    for path, text in after.items():
        if before.get(path) != text:
            blob = Blob.from_string(text.encode())
            store.add_object(blob)
            changes.append((_path(folder, path), _FILE_MODE, blob.id))
    if not changes:
        return _Push(base, base, [])
    root = commit_tree_changes(store, tree.id, changes)
    head = Commit()
    head.tree = root
    head.parents = [base] if base else []
    head.author = head.committer = _COMMITTER
    head.author_time = head.commit_time = int(at.timestamp())
    head.author_timezone = head.commit_timezone = 0
    head.encoding = b"UTF-8"
    head.message = message.encode()
    store.add_object(head)
    return _Push(base, head.id, [store[sha] for sha in store if sha not in known])


def _tree_of(store: Any, base: ObjectID) -> Tree:
    if not base:
        empty = Tree()
        store.add_object(empty)
        return empty
    tree: Tree = store[store[base].tree]
    return tree


def _fetch(remote: Remote) -> tuple[MemoryRepo, ObjectID]:
    """Return the branch's last commit with all its files, and its id."""
    repo = MemoryRepo()
    with _TranslatedErrors(remote):
        client, path = _client(remote)
        refs = client.get_refs(path).refs
        head = refs.get(_ref(remote))
        if head is None:
            if any(name.startswith(b"refs/heads/") for name in refs):
                raise GitRefused(f"{remote.url} has no branch {remote.branch}.")
            return repo, _NO_COMMIT
        client.fetch(path, repo, determine_wants=lambda *_refs, **_depth: [head], depth=1)
    return repo, head


def _send(remote: Remote, push: _Push) -> str:
    """Push to the branch and return why it failed. Empty if the branch is at `push.head` now.

    The server compares the old id under its own lock, so one of two concurrent pushes is refused.
    """
    ref = _ref(remote)
    has_moved = False

    def update(refs: dict[Ref, ObjectID]) -> dict[Ref, ObjectID]:
        nonlocal has_moved
        has_moved = refs.get(ref, _NO_COMMIT) != push.base
        return refs if has_moved else {ref: push.head}

    with _TranslatedErrors(remote):
        client, path = _client(remote)
        result = client.send_pack(
            path,
            update,
            lambda *_args, **_more: pack_objects_to_data([(item, None) for item in push.objects]),
        )
    if has_moved:
        return "someone else pushed at the same time"
    problem = (result.ref_status or {}).get(ref)
    if problem is None:
        return ""
    return problem


class _TranslatedErrors:
    """A context that turns errors of Dulwich and urllib3 into a GitError that names the fix."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        url = self._remote.url
        if isinstance(error, HTTPUnauthorized):
            raise GitRefused(f"{url} rejected the credential.") from error
        if isinstance(error, NotGitRepository):
            raise GitRefused(
                f"There is no repository at {url}, or the credential has no access."
            ) from error
        if isinstance(error, GitProtocolError) and "http resp 403" in str(error):
            raise GitRefused(f"{url} denies access with this credential (403).") from error
        if isinstance(
            error, GitProtocolError | HangupException | urllib3.exceptions.HTTPError | OSError
        ):
            raise GitUnreachable(
                f"{url} does not answer: {network_failures.describe(error)}"
            ) from error


def _client(remote: Remote) -> tuple[Urllib3HttpGitClient, str]:
    pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False)
    client, path = get_transport_and_path_from_url(
        remote.url,
        username=remote.username or ("git" if remote.token else None),
        password=remote.token or None,
        pool_manager=pool,
    )
    if not isinstance(client, Urllib3HttpGitClient):
        raise GitRefused(f"{remote.url}: only https addresses are supported.")
    return client, path


def _files(store: Any, root: ObjectID, folder: str) -> dict[str, str]:
    try:
        _, sha = tree_lookup_path(store.__getitem__, root, folder.encode())
    except KeyError:
        return {}
    return {
        entry.path.decode(): store[entry.sha].data.decode("utf-8", "replace")
        for entry in iter_tree_contents(store, sha)
    }


def _path(folder: str, path: str) -> bytes:
    return f"{folder}/{path}".encode()


def _ref(remote: Remote) -> Ref:
    return Ref(b"refs/heads/" + remote.branch.encode())
