"""What the people of the demonstration do: the sample data, and the lead's part."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone

from crewlog.client import Client, NewEntry
from crewlog.client.stored import Json

PROJECT = "weather-cli"
AGENTS = ("ada", "grace")
TASKS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("Describe the command line", "Describing the command line", ()),
    ("Fetch the forecast", "Fetching the forecast", (1,)),
    ("Cache answers for ten minutes", "Caching answers", (2,)),
    ("Format the table", "Formatting the table", (1,)),
    ("Write the tests", "Writing the tests", (2, 4)),
    ("Write the README", "Writing the README", (1,)),
    ("Release 0.1", "Releasing", (3, 5, 6)),
)
"""Subject, active form, and the numbers (from 1) of the tasks it waits for."""
PLAN = """# weather-cli

A command that prints the forecast for a town.

1. Agree on the command line.
2. Fetch, cache and format.
3. Test, document, release.
"""
Say = Callable[[str], None]


def message(role: str, *blocks: dict[str, Json], **more: Json) -> NewEntry:
    """A message entry as agents write it."""
    now = datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
    return NewEntry("message", {"role": role, "content": list(blocks), "timestamp": now, **more})


def text(words: str) -> dict[str, Json]:
    return {"type": "text", "text": words}


def tool_call(call_id: str, name: str, args: dict[str, Json]) -> dict[str, Json]:
    return {"type": "toolCall", "tool_call": {"id": call_id, "name": name, "args": args}}


def tool_result(call_id: str, words: str) -> NewEntry:
    return message("tool", text(words), metadata={"tool_call_id": call_id, "is_error": False})


def llm_call(tokens: int, cached: int) -> NewEntry:
    data: dict[str, Json] = {
        "provider": "example",
        "model": "sonata-2",
        "input_tokens": tokens,
        "output_tokens": tokens // 8,
        "cache_read_tokens": cached,
        "latency_ms": 640,
        "stop_reason": "toolUse",
    }
    return NewEntry("llm_call", data)


def lead_opens(lead: Client, say: Say, pace: float) -> str:
    """Talks, plans, and fills the board; the session's id, which names the board too."""
    session = lead.session.create(name="Weather CLI").session
    lead.history.add("Build a small weather command, with tests.", session_id=session.id)
    lead.session.append(
        session.id,
        [
            NewEntry("model_change", {"provider": "example", "model": "sonata-2"}),
            message("user", text("Build a small weather command, with tests.")),
            message(
                "assistant", text("I look at the folder first."), tool_call("call-1", "list_files", {"path": "."}), stop_reason="toolUse"
            ),
            llm_call(1800, 0),
            tool_result("call-1", '["pyproject.toml"]'),
            message("assistant", text("An empty project. I write a plan and split the work."), stop_reason="stop"),
            llm_call(2100, 1800),
        ],
    )
    say(f"session {session.id}: a question, a tool call and its result, an answer")
    time.sleep(0.8 * pace)
    plan = lead.plan.generate_name().name
    lead.plan.save(plan, PLAN, if_match="")
    lead.session.append(session.id, [NewEntry("plan_state", {"phase": "approved", "slug": plan})])
    say(f"saves the plan {plan}.md")
    time.sleep(0.8 * pace)
    lead.roster.set_team(session.id, "weather crew", description="two agents, one board")
    for name, colour in zip(AGENTS, ("green", "magenta")):
        lead.roster.upsert_member(session.id, {"name": name, "agent_type": "coder", "color": colour})
    for subject, doing, waits_for in TASKS:
        lead.task.create(session.id, subject, active_form=doing, blocked_by=[str(number) for number in waits_for])
    say(f"puts {len(TASKS)} tasks with dependencies on the board; only the first can be begun")
    time.sleep(0.8 * pace)
    return session.id


def lead_resumes(lead: Client, session_id: str, say: Say, pace: float) -> None:
    """Compacts what was said, and shows what a model would be given now."""
    before = lead.session.snapshot(session_id)
    say(f"the snapshot has {len(before.messages)} messages, model {before.model}, plan {before.plan_slug} ({before.plan_phase})")
    summary = "The weather command is written, tested and released as 0.1 by ada and grace."
    lead.session.append(session_id, [NewEntry("compaction", {"summary": summary})])
    lead.session.append(session_id, [message("user", text("What is left to do?"))])
    after = lead.session.snapshot(session_id)
    say(f"after a compaction it has {len(after.messages)}: the summary, and what was said since; nothing is deleted from the log")
    time.sleep(0.5 * pace)
    stats = lead.session.stats(session_id=session_id).total
    say(f"{stats.calls} model calls, {stats.input_tokens} tokens in, cache hit rate {stats.cache_hit_rate:.0%}")
    hits = lead.session.search("forecast", all_projects=True).hits + lead.session.search("released").hits
    say(f"searching the logs for “released” finds: {hits[0].snippet if hits else 'nothing'}")
