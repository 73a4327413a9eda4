"""Rows to records: what an account says of its files, and what their rows mean by it."""
