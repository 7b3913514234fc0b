"""The views of the application, a folder each: components, callbacks, and models without Dash."""
