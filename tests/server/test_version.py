"""Does the server tell the version that is installed?"""

from __future__ import annotations

from importlib import metadata

from server.rawclient import RawClient


def test_the_version_told_is_the_one_installed(client: RawClient) -> None:
    assert client.initialized["serverInfo"]["version"] == metadata.version("crewlog")
    assert client.request("crewlog/status")["version"] == metadata.version("crewlog")
