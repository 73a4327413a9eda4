"""Door: the web console at /console, for people who support members and operate the service."""
