"""The OpenRPC document: what `crewlog schema` prints."""

from __future__ import annotations

import inspect
import json
from typing import Any

import msgspec

from crewlog.protocol import errors, params, records, results
from crewlog.protocol.methods import METHODS, NOTIFICATIONS, PROTOCOL_VERSION, Method

Schema = dict[str, Any]

OPENRPC_VERSION = "1.3.2"
_REF = "#/components/schemas/{name}"
_PROTOCOL_ERROR_TEXTS = {
    errors.PARSE_ERROR: "A body that is not JSON, or bytes that are no message. The id is null; the connection goes on.",
    errors.INVALID_REQUEST: "JSON that is no request, an id that is still in use, or a request after `shutdown`.",
    errors.METHOD_NOT_FOUND: "There is no such method.",
    errors.INVALID_PARAMS: "A param is missing or wrong; `field` is its path.",
    errors.INTERNAL_ERROR: "A fault of the server; its log has the details.",
    errors.NOT_INITIALIZED: "A request came before `initialize`.",
    errors.CANCELLED: "The request was cancelled before it began, and had no effect.",
}


def openrpc_document() -> Schema:
    """All methods with their params, results and errors, from the table. The notifications stand under `x-notifications`."""
    structs = [method.params for method in METHODS.values()]
    stored = [struct for struct in vars(records).values() if isinstance(struct, type) and struct.__module__ == records.__name__]
    found = [
        *structs,
        *(method.result for method in METHODS.values()),
        *(item.params for item in NOTIFICATIONS.values()),
        *stored,
        params.InitializationOptions,
        results.Capabilities,
    ]
    schemas, components = _steady(msgspec.json.schema_components(found, ref_template=_REF))
    of_result = dict(zip(METHODS, schemas[len(structs) :]))
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {
            "title": "Crewlog",
            "version": f"{PROTOCOL_VERSION}.0.0",
            "description": "The records of coding agents: JSON-RPC 2.0 over stdio with the framing and the lifecycle of the Language "
            "Server Protocol. Stored records cross as they are on disk; all else is camelCase; times are RFC 3339.",
            "license": {"name": "Apache-2.0"},
        },
        "methods": [_method(method, components, of_result[method.name]) for method in METHODS.values()],
        "components": {"schemas": _used_schemas(components), "errors": _errors()},
        "x-notifications": [
            {"name": item.name, "summary": item.doc, "params": {"$ref": _REF.format(name=item.params.__name__)}}
            for item in NOTIFICATIONS.values()
        ],
    }


def openrpc_json() -> str:
    """The document as `crewlog schema` prints it."""
    return json.dumps(openrpc_document(), indent=2, ensure_ascii=False) + "\n"


def _steady(value: Any) -> Any:
    """The same however a version of msgspec indents descriptions and orders the choices of a type: null is the last."""
    if isinstance(value, dict):
        steady = {key: _steady(item) for key, item in value.items()}
        if isinstance(steady.get("description"), str):
            steady["description"] = inspect.cleandoc(steady["description"])
        if isinstance(steady.get("anyOf"), list):
            steady["anyOf"].sort(key=lambda choice: choice == {"type": "null"})
        return steady
    return [_steady(item) for item in value] if isinstance(value, (list, tuple)) else value


def _method(method: Method, components: dict[str, Schema], result: Schema) -> Schema:
    struct = components[method.params.__name__]
    required = struct.get("required", [])
    given = [{"name": name, "required": name in required, "schema": schema} for name, schema in struct.get("properties", {}).items()]
    kinds = [*(["invalidParams"] if given else []), *method.errors]
    document: Schema = {
        "name": method.name,
        "summary": method.doc,
        "paramStructure": "by-name",
        "params": sorted(given, key=lambda param: not param["required"]),
        "result": {"name": "result", "schema": result},
        "errors": [{"$ref": f"#/components/errors/{kind}"} for kind in kinds],
    }
    if struct.get("description"):
        document["description"] = struct["description"]
    return document


def _used_schemas(components: dict[str, Schema]) -> dict[str, Schema]:
    """All but the params of methods, which stand in the methods themselves. `subscribe`'s are also an initialization option."""
    only_params = {method.params.__name__ for method in METHODS.values()} - {params.Subscribe.__name__}
    return {name: schema for name, schema in sorted(components.items()) if name not in only_params}


def _errors() -> Schema:
    ours = {row.kind: {"code": row.code, "message": row.doc, "data": {"kind": row.kind}} for row in errors.TABLE}
    general = {
        kind: {"code": code, "message": _PROTOCOL_ERROR_TEXTS[code], "data": {"kind": kind}}
        for code, kind in errors.PROTOCOL_ERRORS.items()
    }
    return {**general, **ours}


def protocol_error_text(code: int) -> str:
    """What a code of JSON-RPC or LSP means here."""
    return _PROTOCOL_ERROR_TEXTS[code]
