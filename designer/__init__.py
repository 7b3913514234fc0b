"""The application in the browser and the command line."""
