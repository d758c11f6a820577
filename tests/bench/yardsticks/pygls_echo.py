"""Bare pygls: one custom request that gives its params back."""

from pygls.lsp.server import LanguageServer

server = LanguageServer("echo", "1")


@server.feature("task/get")
def echo(*params: object) -> object:
    return {"id": "1", "subject": "one", "status": "pending"}


server.start_io()
