"""Bulk reading: columns of bodies over Arrow, `streamweld scan`, and the engines."""
