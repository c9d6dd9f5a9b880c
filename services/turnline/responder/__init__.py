"""The responder: output queue -> response store or push."""
