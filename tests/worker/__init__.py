"""Tests of the delivering worker."""
