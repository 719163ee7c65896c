"""The JSON that streamweld accepts: RFC 8259, nested at most 128 levels deep, without numbers that overflow to
infinity.
"""
