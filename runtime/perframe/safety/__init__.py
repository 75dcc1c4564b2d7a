"""What protects a user from files of others: private caches, and names that are shown or become files."""
