"""Tests of the eligibility files."""
