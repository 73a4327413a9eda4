"""Tests of what an account says of its files, and of suggested mappings."""
