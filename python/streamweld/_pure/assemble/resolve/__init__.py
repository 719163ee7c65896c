"""Finds the part or call that a delta belongs to: by evidence in Chat, which does not address parts reliably, and by
address in the other dialects.
"""
