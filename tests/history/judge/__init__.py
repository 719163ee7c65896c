"""Independent checks of converted histories and requests, based on vendors' own types, validators and documentation.

No module in this folder imports `streamweld.history.check`, `streamweld.requests.check`, or code that they use.
"""
