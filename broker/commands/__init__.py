"""The commands: options and start of the broker, and those that work on files without one."""
