"""Tests of speaking to relays."""
