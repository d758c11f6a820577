"""The reference page: `docs/protocol.md`."""

from __future__ import annotations

import msgspec
from msgspec import inspect

from crewlog.protocol import errors, params, results
from crewlog.protocol.generators.shapes import (
    HEADER,
    NAMES,
    all_structs,
    bare,
    choices,
    default_of,
    doc_of,
    params_struct,
    record_of,
    result_type,
    struct_of,
)
from crewlog.protocol.methods import METHODS, NOTIFICATIONS, Method
from crewlog.protocol.schema import protocol_error_text

_INTRODUCTION = """\
JSON-RPC 2.0 over stdio with the framing (`Content-Length` headers) and the lifecycle of the Language Server Protocol. The server is
started as `crewlog serve`; any LSP client can be the client.

- Stored records (entries, messages, tasks, teams, history lines) cross as they are on disk, with all fields that their writer gave them.
  Everything else is camelCase. Times are RFC 3339 text.
- Unknown params are ignored. A missing or ill-typed one is `-32602` with the path of the field, such as `$.entries[0].kind`.
- A reply to a mutation means: it is done, on disk to the promised durability, and every later read by any process sees it.
- Requests on one resource (a session, a task list, a team, a plan, a transcript, the history) take effect in the order in which they
  arrive; those on different resources do not wait for each other.
- `$/cancelRequest` withdraws a request that has not begun: it has no effect and is answered with `-32800`.
- Branch on `error.data.kind`, not on the sentence in `error.message`.
"""

_FIRST_BYTES = """\
## From the first byte

Each message, in both directions, is a header, an empty line and a JSON body. `Content-Length` counts the bytes of the body; lines of the
header end with CR LF, and nothing follows the body. What a conversation is like (`→` to the server's standard input, `←` from its
standard output, one body a line, headers left out but for the first):

```text
→ Content-Length: 104
→
→ {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"initializationOptions":{"home":"/tmp/a-home"}}}
← {"jsonrpc":"2.0","id":1,"result":{"capabilities":{…},"serverInfo":{"name":"crewlog","version":"…"}}}
→ {"jsonrpc":"2.0","method":"initialized","params":{}}
→ {"jsonrpc":"2.0","id":2,"method":"task/create","params":{"listId":"board","subject":"Fix it"}}
← {"jsonrpc":"2.0","id":2,"result":{"id":"1","subject":"Fix it","status":"pending","blocks":[],"blockedBy":[]}}
→ {"jsonrpc":"2.0","id":3,"method":"task/claim","params":{"listId":"board","id":"99","owner":"ada"}}
← {"jsonrpc":"2.0","id":3,"error":{"code":1101,"message":"task '99' not found","data":{"kind":"taskNotFound","id":"99"}}}
→ {"jsonrpc":"2.0","id":4,"method":"shutdown"}
← {"jsonrpc":"2.0","id":4,"result":null}
→ {"jsonrpc":"2.0","method":"exit"}
```

Replies come in the order in which they are ready, and notifications between them: match replies by `id`, and expect a message with a
`method` at any time. Standard error carries the log, for people.

## How an agent works

1. `task/claimNext` with `owner`, `leaseMs` and `waitMs`: the answer is a task that is now yours, or null when there was none in time. A
   claim leaves the task's `status` alone: `task/update` with `status: "in_progress"` shows the others that you have begun.
2. While your connection lives, its server renews the lease. If you would rather show that you are alive yourself, claim with
   `autoRenew: false` and call `task/renew`.
3. `task/update` with `status: "completed"`, or `task/release` to give it back. `leaseLost` in answer to any of these means that the task
   is somebody else's by now: stop.

When the agent dies, its server ends with it, nothing renews the lease, and within `leaseMs` the task can be claimed by others.
"""


def reference_page() -> str:
    groups = list(dict.fromkeys(_group(name) for name in METHODS))
    text = ["# The protocol", "", f"<!-- {HEADER} -->", "", _INTRODUCTION, _FIRST_BYTES, *_lifecycle(), "## Methods", ""]
    for group in groups:
        for method in METHODS.values():
            if _group(method.name) == group:
                text += _method(method)
    text += ["## Notifications to the client", ""]
    for item in NOTIFICATIONS.values():
        text += [f"### `{item.name}`", "", item.doc, "", *_about(item.params), *_fields(struct_of(item.params))]
    return "\n".join([*text, *_records(), *_errors()]).rstrip() + "\n"


def _group(name: str) -> str:
    return name.partition("/")[0] if "/" in name else "crewlog"


def _lifecycle() -> list[str]:
    return [
        "## Lifecycle",
        "",
        "`initialize` with these `initializationOptions`, all optional:",
        "",
        *_about(params.InitializationOptions),
        *_fields(struct_of(params.InitializationOptions)),
        "The reply has `serverInfo`, and under `capabilities.experimental.crewlog`:",
        "",
        *_fields(struct_of(results.Capabilities)),
        "`initialized` may follow, as in LSP; nothing waits for it. `shutdown` and `exit` end it as in LSP. The server also ends when its",
        "input ends, or when the process `processId` is gone.",
        "",
    ]


def _method(method: Method) -> list[str]:
    struct, result = params_struct(method.name), result_type(method.name)
    text = [f"### `{method.name}`", "", method.doc, "", *_about(method.params)]
    text += _fields(struct) if struct.fields else ["No params.", ""]
    text += [f"**Result:** {_type(result)}", ""]
    inner = choices(result)[0][0] if isinstance(result, inspect.UnionType) else result
    if isinstance(inner, inspect.StructType):
        text += [*_about(inner.cls), *_fields(inner)]
    if method.errors:
        text += [f"**Errors:** {', '.join(f'[`{kind}`](#errors)' for kind in method.errors)}", ""]
    return text


def _about(cls: type) -> list[str]:
    doc = doc_of(cls)
    return [doc, ""] if doc else []


def _fields(struct: inspect.StructType) -> list[str]:
    rows = ["| field | type | |", "| --- | --- | --- |"]
    rows += [f"| `{item.encode_name}`{'' if item.required else '?'} | {_type(item.type)} | {_limits(item)} |" for item in struct.fields]
    return [*rows, ""]


def _limits(field: inspect.Field) -> str:
    type_ = bare(field.type)
    if isinstance(type_, inspect.UnionType):
        type_ = choices(type_)[0][0]
    notes = []
    if isinstance(type_, inspect.IntType) and type_.ge is not None:
        notes.append(f"{type_.ge:,} to {type_.le:,}" if type_.le is not None else f"at least {type_.ge}")
    if isinstance(type_, inspect.StrType) and type_.min_length:
        notes.append("not empty")
    default = default_of(field)
    if isinstance(default, (bool, int, str)) and not field.required and default not in ("", 0):
        notes.append(f"default `{msgspec.json.encode(default).decode()}`")
    return "; ".join(notes)


def _type(type_: inspect.Type) -> str:
    type_ = bare(type_)
    record = record_of(type_)
    if record is not None:
        return _link(NAMES[record])
    if isinstance(type_, inspect.StructType):
        return _link(_name(type_.cls))
    if isinstance(type_, inspect.ListType):
        return f"list of {_type(type_.item_type)}"
    if isinstance(type_, inspect.DictType):
        return f"object of {_type(type_.value_type)}"
    if isinstance(type_, inspect.LiteralType):
        return ", ".join(f'`"{value}"`' for value in type_.values)
    if isinstance(type_, inspect.UnionType):
        return " or ".join([*map(_type, choices(type_)[0]), *(["null"] if choices(type_)[1] else [])])
    names: dict[type[inspect.Type], str] = {
        inspect.StrType: "string",
        inspect.IntType: "integer",
        inspect.FloatType: "number",
        inspect.BoolType: "boolean",
        inspect.NoneType: "null",
        inspect.RawType: "any JSON",
    }
    return names[type(type_)]


def _name(cls: type) -> str:
    return NAMES.get(cls.__name__, cls.__name__)


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _records() -> list[str]:
    """All structs that are not told where they are used."""
    text = ["## Records", ""]
    for struct in all_structs():
        if struct.cls.__module__ == params.__name__ and struct.cls not in (params.NewEntry, params.Subscribe):
            continue
        if struct.cls in (results.Capabilities, *(item.params for item in NOTIFICATIONS.values())):
            continue
        text += [f"### {_name(struct.cls)}", "", *_about(struct.cls), *_fields(struct)]
    return text


def _errors() -> list[str]:
    rows = ["## Errors", "", "`error.data` has `kind` and what the last column names.", ""]
    rows += ["| code | kind | means | data |", "| --- | --- | --- | --- |"]
    for code, kind in errors.PROTOCOL_ERRORS.items():
        extra = "`field`" if code == errors.INVALID_PARAMS else ""
        rows.append(f"| {code} | `{kind}` | {protocol_error_text(code)} | {extra} |")
    for row in errors.TABLE:
        facts = ", ".join(f"`{field.encode_name}`" for field in struct_of(row.facts).fields)
        rows.append(f"| {row.code} | `{row.kind}` | {row.doc} | {facts} |")
    return rows
