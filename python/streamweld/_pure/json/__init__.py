"""JSON as streamweld accepts it: RFC 8259, at most 128 levels deep, no infinite numbers."""
