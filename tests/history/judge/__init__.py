"""The independent judge of converted histories and requests: what vendors' own types, validators and texts say.

Nothing here imports `streamweld.history.check` or `streamweld.requests.check`, or anything that they use.
"""
