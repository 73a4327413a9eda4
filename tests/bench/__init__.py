"""The simulation behind docs/scaling.md; what is measured is no test."""
