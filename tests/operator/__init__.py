"""The operator's interface."""
