"""Independent checks of converted histories and requests, based on vendors' own types, validators and documentation.

Nothing here imports `streamweld.history.check` or `streamweld.requests.check`, or anything that they use.
"""
