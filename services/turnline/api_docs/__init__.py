"""The pages of `docs/api`: every contract of the product, made from what the product runs on."""
