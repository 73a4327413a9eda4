"""The bodies of requests and answers, a module for each noun. A class has the name of its schema.

`schemas` of `interface.bodies` has them in the order of the document.
"""
