"""What is known of patents without an index: codes, numbers, families, headings, mentions, translation."""
