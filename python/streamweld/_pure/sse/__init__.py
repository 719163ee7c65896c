"""Parse server-sent events (WHATWG HTML Standard, section 9.2.6) from bytes that arrive in pieces of any size."""
