"""Transactions as a machine over `__transaction_state`: no files, no clock."""
