"""What the command `tfpe` is made of."""
