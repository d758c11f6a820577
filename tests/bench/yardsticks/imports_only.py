"""What any such server costs before its first line: Python, asyncio, msgspec."""

import asyncio
import sys

import msgspec

sys.exit(0 if asyncio and msgspec else 1)
