"""Tests about the code base and its documents: what is promised in one place holds in the other."""
