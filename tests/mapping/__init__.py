"""Tests of mappings: rows to records."""
