"""Clients that generators make from the OpenAPI document, at work."""
