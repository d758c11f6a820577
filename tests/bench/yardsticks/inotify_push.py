"""Raw inotify by way of the C library: `inotify_push.py FOLDER` writes a line whenever a file was moved into the folder."""

import ctypes
import os
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
IN_MOVED_TO = 0x80
watch = libc.inotify_init1(0)
if watch < 0 or libc.inotify_add_watch(watch, os.fsencode(sys.argv[1]), IN_MOVED_TO) < 0:
    raise OSError(ctypes.get_errno(), "inotify")
os.write(1, b"ready\n")
while events := os.read(watch, 4096):
    at = 0
    while at < len(events):
        at += struct.calcsize("iIII") + struct.unpack_from("iIII", events, at)[3]
        os.write(1, b"moved\n")
