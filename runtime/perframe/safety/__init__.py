"""The lowest floor: what protects a user from files of others, such as private caches and safe names, and records."""
