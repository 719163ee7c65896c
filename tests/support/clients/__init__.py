"""Official clients as judges of what streamweld writes."""
