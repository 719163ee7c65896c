"""Official clients that check the streams that streamweld writes."""
