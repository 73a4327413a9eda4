"""The helpers for a sandbox installation."""
