"""Tests of the formats of eligibility files: bytes to rows."""
