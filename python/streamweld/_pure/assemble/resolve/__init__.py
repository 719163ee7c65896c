"""Finds the part or call that a delta belongs to. Chat does not address calls reliably, so all evidence is considered
there; the other dialects use addresses.
"""
