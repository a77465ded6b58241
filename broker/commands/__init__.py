"""The commands that work on files while no broker runs."""
