"""What the page is made of: cards, forms and words; nothing here knows what happens when."""
