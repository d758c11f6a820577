"""`crewlog serve`: one client's server, speaking JSON-RPC over stdio, on a home that it shares with many others."""
