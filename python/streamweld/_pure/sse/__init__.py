"""Bytes to server-sent events, as the WHATWG HTML Standard 9.2.6 says, in pieces of any size."""
