"""What all views share: names of components, parts of pages, words, the request of the header."""
