"""RFC 3339 timestamps as Go writes and reads them: text with up to nine fractional digits and any offset."""

from __future__ import annotations

import functools
import re
import time
from datetime import datetime, timedelta, timezone

ZERO = "0001-01-01T00:00:00Z"
"""How Go writes a time that was never set."""

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_USUAL = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d):([0-5]\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
_second_prefix: tuple[int, str, str] = (-1, "", "")


def now() -> str:
    """The present time with this machine's offset, to the nanosecond, trailing zeros dropped as in Go's RFC3339Nano."""
    return format_ns(time.time_ns())


def format_ns(ns: int) -> str:
    """`ns`: nanoseconds since 1970 in UTC."""
    global _second_prefix
    second, fraction = divmod(ns, 1_000_000_000)
    known, prefix, zone = _second_prefix
    if known != second:  # a burst of appends shares one look at the time zone
        local = time.localtime(second)
        prefix = time.strftime("%Y-%m-%dT%H:%M:%S", local)
        zone = _offset(local.tm_gmtoff)
        _second_prefix = (second, prefix, zone)
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return prefix + digits + zone


def parse_ns(text: str) -> int | None:
    """Nanoseconds since 1970 (negative before), None where Go's `time.Time` would not read the text.

    Digits beyond the ninth are dropped. There is no 24:00 and no leap second.
    """
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        minute, second, fraction, offset = usual.groups()
        start = _minute_ns(minute, offset)
        return None if start is None else start + int(second) * 1_000_000_000 + (int(fraction.ljust(9, "0")) if fraction else 0)
    return _parse_ns(text)


@functools.lru_cache(maxsize=4096)
def _minute_ns(minute: str, offset: str) -> int | None:
    """Times come in bursts: those of one minute share the arithmetic."""
    return _parse_ns(f"{minute}:00{offset}")


def _parse_ns(text: str) -> int | None:
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    offset_minutes = 0
    if match[8]:
        offset_hour, offset_minute = int(match[9]), int(match[10])
        if offset_hour > 24 or offset_minute >= 60:
            return None
        offset_minutes = (offset_hour * 60 + offset_minute) * (1 if match[8] == "+" else -1)
    try:
        moment = datetime(year, month, day, hour, minute, second) if year else None
    except ValueError:
        return None
    if moment is None:  # Go knows a year 0, Python does not
        return None
    whole = moment - _EPOCH - timedelta(minutes=offset_minutes)
    fraction = int((match[7] or "").ljust(9, "0")[:9])
    return (whole.days * 86_400 + whole.seconds) * 1_000_000_000 + fraction


_PLAINLY_A_TIME = re.compile(
    r"(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?"
    r"(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def is_time(text: str) -> bool:
    """Whether `parse_ns` reads it; most texts are told without the arithmetic."""
    return _PLAINLY_A_TIME.fullmatch(text) is not None or parse_ns(text) is not None


def local_date() -> str:
    """Today as `YYYY-MM-DD`, by this machine's clock and zone."""
    return datetime.now(timezone.utc).astimezone().strftime("%Y-%m-%d")


def _offset(seconds_east: int) -> str:
    if seconds_east == 0:
        return "Z"
    sign = "+" if seconds_east > 0 else "-"
    hours, rest = divmod(abs(seconds_east), 3600)
    return f"{sign}{hours:02d}:{rest // 60:02d}"
