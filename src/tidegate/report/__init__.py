"""What people and other programs are told: tables, JSON, progress, colours."""
