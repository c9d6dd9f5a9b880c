"""The scaler: tells KEDA how much work the input queue holds."""
