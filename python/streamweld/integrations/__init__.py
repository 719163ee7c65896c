"""Repair streams in transit: in the official clients, in HTTP clients, in ASGI applications, or in a proxy."""
