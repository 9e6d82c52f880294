"""Field types and limits of every kind, and the check of a value against them."""
