"""Tests of the readers of eligibility files."""
