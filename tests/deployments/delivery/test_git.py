"""The gateway to Git against a real server over HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from deployments.delivery.gateways import git
from deployments.delivery.gateways.git import GitCommit, GitRefused, GitUnreachable, Remote
from tests.deployments.git_server import TOKEN, USERNAME, GitServer, serving
from tests.fleet.objects import START

FOLDER = "clusters/prod/vision"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serving(tmp_path) as git_server:
        yield git_server


@pytest.fixture
def remote(server: GitServer) -> Remote:
    return Remote(server.url, "main", USERNAME, TOKEN)


def write(remote: Remote, message: str = "A change", **files: str) -> GitCommit:
    def change(before: Mapping[str, str]) -> Mapping[str, str]:
        return {**before, **{f"{name}.yaml": text for name, text in files.items()}}

    return git.commit(remote, folder=FOLDER, change=change, message=message, at=START)


def test_the_first_commit_of_an_empty_repository(server: GitServer, remote: Remote) -> None:
    made = write(remote, "Begin\n\nRequested-by: Ana", a="1\n")

    assert made == GitCommit(server.git("rev-parse", "main"), is_new=True)
    assert server.files() == [f"{FOLDER}/a.yaml"]
    assert server.git("log", "-1", "--format=%B|%an|%at", "main") == (
        f"Begin\n\nRequested-by: Ana|Slipway|{int(START.timestamp())}"
    )


def test_a_change_keeps_other_files_and_repeating_it_makes_no_commit(
    server: GitServer, remote: Remote
) -> None:
    server.push_by_hand("README.md", "ours")
    first = write(remote, a="1\n", b="2\n")

    again = write(remote, a="1\n")

    assert again == GitCommit(first.sha, is_new=False)
    assert server.commits() == ["By hand", "A change"]
    assert server.files() == ["README.md", f"{FOLDER}/a.yaml", f"{FOLDER}/b.yaml"]


def test_the_folder_of_removed_files_is_removed(server: GitServer, remote: Remote) -> None:
    server.push_by_hand("README.md", "ours")
    write(remote, a="1\n")

    git.commit(remote, folder=FOLDER, change=lambda _files: {}, message="Retire", at=START)

    assert server.files() == ["README.md"]


def test_a_concurrent_push_is_kept(server: GitServer, remote: Remote) -> None:
    write(remote, a="1\n")
    pushed: list[str] = []

    def meanwhile() -> None:
        if not pushed:
            pushed.append("by hand")
            server.push_by_hand(f"{FOLDER}/other.yaml", "theirs")

    server.before_receive = meanwhile

    made = write(remote, "Second", a="2\n")

    assert made.is_new
    assert server.commits() == ["A change", "By hand", "Second"]
    assert server.text(f"{FOLDER}/a.yaml") == "2"
    assert server.text(f"{FOLDER}/other.yaml") == "theirs"


def test_pushing_ends_after_several_concurrent_pushes(server: GitServer, remote: Remote) -> None:
    write(remote, a="1\n")
    counted = iter(range(100))
    server.before_receive = lambda: server.push_by_hand("log.txt", str(next(counted)))

    with pytest.raises(GitUnreachable, match="received other pushes each time"):
        write(remote, a="2\n")

    assert server.text(f"{FOLDER}/a.yaml") == "1"


def test_a_push_that_a_rule_of_the_repository_refuses(server: GitServer, remote: Remote) -> None:
    write(remote, a="1\n")
    server.refuse_pushes("main is protected")

    with pytest.raises(GitRefused, match="rejected the push to main: pre-receive hook declined"):
        write(remote, a="2\n")

    assert server.commits() == ["A change"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"token": "wrong"}, "rejected the credential"),
        ({"branch": "production"}, "has no branch production"),
    ],
)
def test_an_error_names_the_fix_without_the_credential(
    server: GitServer, remote: Remote, changed: dict[str, str], message: str
) -> None:
    server.push_by_hand("README.md", "ours")

    with pytest.raises(GitRefused, match=message) as caught:
        write(replace(remote, **changed), a="1\n")

    assert TOKEN not in str(caught.value)
    assert TOKEN not in repr(remote)
    assert server.commits() == ["By hand"]


def test_a_missing_repository_is_named(server: GitServer, remote: Remote) -> None:
    with pytest.raises(GitRefused, match="There is no repository"):
        write(replace(remote, url=server.url.replace("fleet", "other")), a="1\n")


def test_a_server_that_does_not_answer_is_named(remote: Remote) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/fleet.git"

        with pytest.raises(GitUnreachable, match="does not answer"):
            write(replace(remote, url=url), a="1\n")
