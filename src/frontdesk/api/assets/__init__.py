"""Files of the documentation. docs has links to the published pages; the folder scalar is
third-party (see its LICENSE).
"""
