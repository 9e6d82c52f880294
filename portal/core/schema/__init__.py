"""What migrations are made of, and which of them others replaced."""
