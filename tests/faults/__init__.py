"""What happens when processes, databases and connections die; one file per kind of fault."""
