"""The `turnline` command."""
