"""What is written from the table of methods: each module turns it into one kind of text."""
