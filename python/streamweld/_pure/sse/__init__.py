"""Parse bytes into server-sent events (WHATWG HTML Standard 9.2.6), in pieces of any size."""
