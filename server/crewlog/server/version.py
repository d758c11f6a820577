"""The version of this distribution; a test compares it with the installed metadata, whose reading takes as long as all of our start."""

VERSION = "0.1.0"
