"""Ways to get the capacity: rented, bought or owned, called as an API, mixed; how each is run and paid."""
