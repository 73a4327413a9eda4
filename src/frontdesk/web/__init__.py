"""What every HTTP door shares: the way of a request, its errors, what is logged of it; it knows no endpoint."""
