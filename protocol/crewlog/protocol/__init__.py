"""The wire of Crewlog: framing, envelopes, the table of methods with their params, results and errors."""
