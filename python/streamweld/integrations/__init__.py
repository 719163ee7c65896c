"""Repair streams in transit: in the official clients, in HTTP clients and in front of a server."""
