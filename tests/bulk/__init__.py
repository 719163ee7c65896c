"""Bulk reading: columns of bodies in Arrow, `streamweld scan`, and the engines."""
