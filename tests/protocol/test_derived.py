"""What is derived from the table is in step with it, and is what it claims to be."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7, Schema

from crewlog.client import AsyncClient, Client
from crewlog.protocol import generate
from crewlog.protocol.errors import BY_KIND, PROTOCOL_ERRORS
from crewlog.protocol.methods import METHODS, NOTIFICATIONS
from crewlog.protocol.schema import openrpc_document, openrpc_json

ROOT = generate.ROOT
META_SCHEMAS = ("@open-rpc/meta-schema@1.14.9", "@json-schema-tools/meta-schema@1.8.0")
PRINT = """
const [first, second] = process.argv.slice(1).map(name => { const found = require(name); return found.default ?? found; });
process.stdout.write(JSON.stringify([first, second]));
"""


@pytest.fixture(scope="session")
def openrpc_validator(tmp_path_factory: pytest.TempPathFactory) -> jsonschema.Draft7Validator:
    """The meta-schema of OpenRPC, from the package of those who made it: we may not copy it into our repository."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("the OpenRPC meta-schema comes as an npm package, and there is no npm here")
    folder = tmp_path_factory.mktemp("meta")
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *META_SCHEMAS]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        if os.environ.get("CI"):
            pytest.fail(f"npm could not install the OpenRPC meta-schema: {done.stderr}")
        pytest.skip(f"npm could not install the OpenRPC meta-schema: {done.stderr}")
    command = ["node", "-e", PRINT, *(name.rpartition("@")[0] for name in META_SCHEMAS)]
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    openrpc, json_schema = json.loads(printed)
    openrpc.pop("$schema")
    resource: Resource[Schema] = Resource.from_contents(json_schema, default_specification=DRAFT7)
    base = json_schema["$id"].rstrip("/")
    registry = Registry[Schema]().with_resources([(base, resource), (base + "/", resource)])
    return jsonschema.Draft7Validator(openrpc, registry=registry)


def test_the_document_is_openrpc(openrpc_validator: jsonschema.Draft7Validator) -> None:
    assert [error.message for error in openrpc_validator.iter_errors(openrpc_document())] == []


def test_the_validator_would_tell(openrpc_validator: jsonschema.Draft7Validator) -> None:
    spoilers: list[Callable[[dict[str, Any]], object]] = [
        lambda document: document["methods"][3]["params"][0].update(schema={"type": "strin"}),
        lambda document: document["methods"][3].pop("params"),
        lambda document: document["components"]["errors"]["busy"].pop("code"),
        lambda document: document.update(more=1),
    ]
    for spoil in spoilers:
        document = openrpc_document()
        spoil(document)
        assert list(openrpc_validator.iter_errors(document))


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_the_document_tells_of_everything_and_refers_to_nothing_that_is_not_there() -> None:
    document = json.loads(openrpc_json())
    assert [method["name"] for method in document["methods"]] == list(METHODS)
    assert [item["name"] for item in document["x-notifications"]] == list(NOTIFICATIONS)
    assert set(document["components"]["errors"]) == {*BY_KIND, *PROTOCOL_ERRORS.values()}
    for reference in references(document):
        _, _, section, name = reference.split("/")
        assert name in document["components"][section], reference
    claim = next(method for method in document["methods"] if method["name"] == "task/claim")
    lease = next(param for param in claim["params"] if param["name"] == "leaseMs")
    assert lease["schema"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 86_400_000}
    required = [param["required"] for param in claim["params"]]
    assert required == sorted(required, reverse=True)


def test_every_schema_in_it_is_one() -> None:
    document = openrpc_document()
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_nothing_that_is_derived_is_stale() -> None:
    assert sorted(generate.stale_files()) == []


def test_a_stale_file_is_found_named_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "FILES", {"a/openrpc.json": openrpc_json})
    assert generate.main(["--check"]) == 1
    assert "a/openrpc.json is stale" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (tmp_path / "a" / "openrpc.json").write_text("{}")
    assert generate.main(["--check"]) == 1


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_the_clients_have_every_method(kind: type[Client] | type[AsyncClient]) -> None:
    client = kind()
    for name in METHODS:
        group, _, method = name.rpartition("/")
        python_name = re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), method)
        holder = client if group in ("", "crewlog") else getattr(client, group)
        assert callable(getattr(holder, python_name)), name


def test_the_two_clients_differ_in_nothing_but_waiting() -> None:
    folder = ROOT / "protocol" / "crewlog" / "client"
    blocking, asynchronous = ((folder / f"_{kind}_api.py").read_text(encoding="utf-8") for kind in ("blocking", "async"))
    plain = asynchronous.replace("async def", "def").replace("await ", "").replace("asyncio client", "blocking client")
    assert ast.dump(ast.parse(plain)) == ast.dump(ast.parse(blocking))


def test_the_reference_page_has_a_place_for_every_link_in_it() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    places = {re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    assert {link for link in re.findall(r"\]\(#([^)]+)\)", text) if link not in places} == set()
    assert all(f"### `{name}`" in text for name in [*METHODS, *NOTIFICATIONS])
    assert all(f"| `{kind}` |" in text for kind in BY_KIND)


def test_the_lua_file_is_lua_and_names_every_method() -> None:
    path = ROOT / "editors" / "neovim" / "lua" / "crewlog" / "types.lua"
    text = path.read_text(encoding="utf-8")
    assert all(f'---| "{name}"' in text for name in [*METHODS, *NOTIFICATIONS])
    code = [line for line in text.splitlines() if line and not line.startswith("--")]
    assert code == ["return {}"]
    defined = set(re.findall(r"^---@(?:class|alias) (crewlog\.[\w.]+)", text, re.MULTILINE))
    used = set(re.findall(r"(?<!@class )(?<!@meta )\bcrewlog\.[\w.]+", "\n".join(re.findall(r"^---@field.*$", text, re.MULTILINE))))
    assert used <= defined


def test_the_client_imports_no_server_and_no_asyncio_unless_asked() -> None:
    code = (
        "import sys, crewlog.client, crewlog.protocol.methods\n"
        "heavy = {'pygls', 'lsprotocol', 'asyncio', 'watchdog', 'click', 'crewlog.server', 'sqlite3', 'attrs', 'cattrs'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "crewlog.client.AsyncClient\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['asyncio']"]
