"""Stores in DynamoDB tables, shared by any number of processes."""
