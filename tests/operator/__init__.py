"""The operator's HTTP interface, as a clinical system sees it."""
