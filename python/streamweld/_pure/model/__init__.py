"""Data types that all layers share: deltas, output, and finish reasons. The rules for interpreting streams are in other
packages.
"""
