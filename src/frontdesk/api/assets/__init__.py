"""Files that the reference page is made of; the folder swagger-ui is third-party (see its LICENSE)."""
