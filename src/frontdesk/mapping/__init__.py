"""Rows to records, by the account's mapping."""
