"""deploy/, and the wheel that an operator installs."""
