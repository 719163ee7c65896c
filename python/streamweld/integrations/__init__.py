"""Repair streams in transit: in the official clients, in HTTP clients, or in front of a server."""
