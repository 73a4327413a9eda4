"""The interface as types: bodies, parameters, headers, operations, and the document of them."""
